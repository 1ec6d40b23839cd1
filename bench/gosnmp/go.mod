module roundel.example/bench/gosnmp

go 1.25

require github.com/gosnmp/gosnmp v1.47.0
