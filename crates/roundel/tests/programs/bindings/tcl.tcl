# Runs the calls of a file by rrdtool-tcl; what comes out goes to standard error, two lines for each.
package require Rrd
fconfigure stderr -buffering none
set left [lmap name [info commands ::Rrd::*] {namespace tail $name}]
set names $left

set file [open [lindex $argv 0]]
while {[gets $file line] >= 0} {
    if {![regexp {^(?:[!~*?-] )?(\w.*)$} $line -> call]} continue
    set words [lassign [split $call " "] name]
    if {$name ni $names} continue
    # It crashes before it calls any library; leaves an error to the next call; knows no file to dump to.
    if {$call in {"first a.rrd" "first none.rrd" graph "lastupdate none.rrd" "dump a.rrd no/where.xml"}} continue
    set left [lsearch -all -inline -not -exact $left $name]
    set failed [catch {Rrd::$name {*}$words} result]
    # It reads a row more than there is.
    if {!$failed && $name eq "fetch"} {set result [lrange $result 0 end-2]}
    puts stderr "$call\n  [expr {$failed ? "error " : ""}][string map {\n \\n} $result]"
}
puts stderr "never called\n  $left"
