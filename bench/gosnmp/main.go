// Asks SNMP agents for ifHCInOctets and ifHCOutOctets of all interfaces with gosnmp, one goroutine an agent: the peer of
// `bench compare --only mrtg`.
//
//	gosnmp bulk|get FIRST-INDEX INTERFACES PASSES PAUSE PORT...
//
// A pass begins PAUSE seconds after the one before it, as a poller's. Prints for each pass the wall time and the CPU time of this process in seconds, and how many interfaces answered.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gosnmp/gosnmp"
)

const (
	in  = ".1.3.6.1.2.1.31.1.1.1.6"
	out = ".1.3.6.1.2.1.31.1.1.1.10"
	// Interfaces of a request: as many as fit into an Ethernet packet.
	atOnce = 25
)

func main() {
	if len(os.Args) < 7 {
		log.Fatal("usage: gosnmp bulk|get FIRST-INDEX INTERFACES PASSES PAUSE PORT...")
	}
	pass := map[string]func(*gosnmp.GoSNMP, int, int) (int, error){"bulk": bulk, "get": get}[os.Args[1]]
	first, interfaces, passes := number(os.Args[2]), number(os.Args[3]), number(os.Args[4])
	pause := time.Duration(number(os.Args[5])) * time.Second
	var agents []*gosnmp.GoSNMP
	for _, port := range os.Args[6:] {
		agent := &gosnmp.GoSNMP{
			Target: "127.0.0.1", Port: uint16(number(port)), Community: "public", Version: gosnmp.Version2c,
			Timeout: 5 * time.Second, MaxOids: 2 * atOnce,
		}
		if err := agent.Connect(); err != nil {
			log.Fatal(err)
		}
		agents = append(agents, agent)
	}
	for range passes {
		time.Sleep(pause)
		start, before := time.Now(), busy()
		var answered atomic.Int64
		var all sync.WaitGroup
		for _, agent := range agents {
			all.Go(func() {
				count, err := pass(agent, first, interfaces)
				if err != nil {
					log.Fatal(err)
				}
				answered.Add(int64(count))
			})
		}
		all.Wait()
		fmt.Println(time.Since(start).Seconds(), busy()-before, answered.Load())
	}
}

func number(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return number
}

// busy is the CPU time of this process so far, in seconds.
func busy() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func isCounter(variable gosnmp.SnmpPDU) bool {
	return variable.Type == gosnmp.Counter32 || variable.Type == gosnmp.Counter64
}

// bulk reads both columns from the interface before the first one on.
func bulk(agent *gosnmp.GoSNMP, first, interfaces int) (int, error) {
	found, last := 0, first-1
	for found < interfaces {
		suffix := "." + strconv.Itoa(last)
		repetitions := min(atOnce, interfaces-found)
		answer, err := agent.GetBulk([]string{in + suffix, out + suffix}, 0, uint32(repetitions))
		if err != nil {
			return found, err
		}
		before := found
		for _, variable := range answer.Variables {
			if index, is := strings.CutPrefix(variable.Name, in+"."); is && isCounter(variable) {
				last = number(index)
				found++
			}
		}
		if found == before {
			return found, fmt.Errorf("port %d ends after %d interfaces", agent.Port, found)
		}
	}
	return found, nil
}

// get asks for the counters by packed GETs.
func get(agent *gosnmp.GoSNMP, first, interfaces int) (int, error) {
	found := 0
	for begin := 0; begin < interfaces; begin += atOnce {
		var names []string
		for index := first + begin; index < first+min(begin+atOnce, interfaces); index++ {
			names = append(names, in+"."+strconv.Itoa(index), out+"."+strconv.Itoa(index))
		}
		answer, err := agent.Get(names)
		if err != nil {
			return found, err
		}
		for _, variable := range answer.Variables {
			if isCounter(variable) {
				found++
			}
		}
	}
	return found / 2, nil
}
