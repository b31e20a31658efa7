package history

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

const coolDown = 100 * time.Millisecond

var (
	one = netip.MustParseAddr("10.0.1.3")
	two = netip.MustParseAddr("10.0.1.4")
)

// at is a call from and until a millisecond.
func at(begin, end int, c Call) Call {
	c.Begin, c.End = time.Duration(begin)*time.Millisecond, time.Duration(end)*time.Millisecond
	return c
}

func add(pod string, addr netip.Addr) Call {
	return Call{Kind: Add, Pods: []string{pod}, Addr: addr}
}
func refused(pod string) Call     { return Call{Kind: Add, Pods: []string{pod}, Outcome: Refused} }
func killedAdd(pod string) Call   { return Call{Kind: Add, Pods: []string{pod}, Outcome: Unknown} }
func del(pod string) Call         { return Call{Kind: Del, Pods: []string{pod}} }
func killedDel(pod string) Call   { return Call{Kind: Del, Pods: []string{pod}, Outcome: Unknown} }
func death(pod string) Call       { return Call{Kind: Death, Pods: []string{pod}} }
func gc(pods ...string) Call      { return Call{Kind: GC, Pods: pods} }
func killedGC(pod ...string) Call { return Call{Kind: GC, Pods: pod, Outcome: Unknown} }

// look saw the pods with the addresses one and two, "" for nobody.
func look(first, second string) Call {
	c := Call{Kind: Look, Owners: map[netip.Addr]string{}}
	for addr, owner := range map[netip.Addr]string{one: first, two: second} {
		if owner != "" {
			c.Owners[addr] = owner
		}
	}
	return c
}

// What must never be is refused, and the error names where it was.
func TestWrongHistoriesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		calls []Call
		want  string
	}{
		"two owners": {[]Call{at(0, 10, add("a", one)), at(5, 15, add("b", one))}, "address 10.0.1.3"},
		"two owners, the first one's DEL comes later":         {[]Call{at(0, 10, add("a", one)), at(20, 30, add("b", one)), at(31, 40, del("a"))}, "address 10.0.1.3"},
		"two owners, one of them only seen":                   {[]Call{at(0, 10, killedAdd("a")), at(20, 21, look("a", "")), at(30, 40, add("b", one))}, "address 10.0.1.3"},
		"given out within the cool-down":                      {[]Call{at(0, 10, add("a", one)), at(20, 30, del("a")), at(40, 119, add("b", one))}, "address 10.0.1.3"},
		"given out again to its own pod within the cool-down": {[]Call{at(0, 10, add("a", one)), at(20, 30, del("a")), at(40, 119, add("a", one))}, "address 10.0.1.3"},
		"the DEL began long ago, but the pod was seen since": {
			[]Call{at(0, 10, add("a", one)), at(20, 130, del("a")), at(120, 125, look("a", "")), at(131, 140, add("b", one))}, "address 10.0.1.3"},
		"cooling ends too early for who was killed": {
			[]Call{at(0, 10, add("a", one)), at(20, 30, del("a")), at(40, 50, killedAdd("b")), at(60, 70, look("b", ""))}, "address 10.0.1.3"},
		"the killed DEL did it, and there was no rest": {[]Call{at(0, 10, add("a", one)), at(20, 30, killedDel("a")), at(40, 119, add("b", one))}, "address 10.0.1.3"},
		"the dead pod's address had no rest":           {[]Call{at(0, 10, add("a", one)), at(20, 200, death("a")), at(40, 119, add("b", one))}, "address 10.0.1.3"},
		"a lost pod":                                   {[]Call{at(0, 10, add("a", one)), at(20, 30, look("", ""))}, "pod a"},
		"a lost pod, by its second ADD":                {[]Call{at(0, 10, add("a", one)), at(200, 210, add("a", two))}, "pod a"},
		"a lost pod, by a killed DEL of another":       {[]Call{at(0, 10, add("a", one)), at(20, 30, killedDel("b")), at(40, 50, look("", ""))}, "pod a"},
		"a pod's address changes":                      {[]Call{at(0, 10, add("a", one)), at(20, 30, look("", "a"))}, "pod a"},
		"what a killed ADD took changes":               {[]Call{at(0, 10, killedAdd("a")), at(20, 30, look("a", "")), at(40, 50, look("", "a"))}, "pod a"},
		"a killed ADD takes after its end":             {[]Call{at(0, 10, killedAdd("a")), at(20, 30, look("", "")), at(40, 50, look("a", ""))}, "pod a"},
		"a killed DEL frees after its end": {
			[]Call{at(0, 10, add("a", one)), at(20, 30, killedDel("a")), at(40, 50, look("a", "")), at(60, 70, look("", ""))}, "pod a"},
		"a DEL that frees nothing":          {[]Call{at(0, 10, add("a", one)), at(20, 30, del("a")), at(40, 50, look("a", ""))}, "pod a"},
		"a refused pod that has nothing":    {[]Call{at(0, 10, add("a", one)), at(20, 30, del("a")), at(40, 50, refused("a"))}, "pod a"},
		"a GC frees what is in its list":    {[]Call{at(0, 10, add("a", one)), at(0, 10, add("b", two)), at(20, 30, gc("b")), at(40, 50, look("", ""))}, "pod a"},
		"a GC gives what is in its list on": {[]Call{at(0, 10, add("a", one)), at(20, 30, gc("b")), at(200, 210, add("b", one))}, "address 10.0.1.3"},
		"a GC leaves what is not in its list": {
			[]Call{at(0, 10, add("a", one)), at(20, 30, gc("a")), at(40, 50, refused("a"))}, "pod a"},
		"a GC's address had no rest": {[]Call{at(0, 10, add("a", one)), at(20, 30, gc("a")), at(40, 119, add("b", one))}, "address 10.0.1.3"},
		"who was never added":        {[]Call{at(0, 10, look("a", ""))}, "address 10.0.1.3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.calls, coolDown)
			if err == nil || !strings.Contains(err.Error(), c.want+": no order") {
				t.Errorf("%v; want %s named", err, c.want)
			}
		})
	}
}

// What can be right, by whatever order, is not refused: there are no false alarms.
func TestRightHistoriesAreAccepted(t *testing.T) {
	for name, calls := range map[string][]Call{
		"nothing":                      nil,
		"a rest as long as it must be": {at(0, 10, add("a", one)), at(20, 30, del("a")), at(40, 120, add("b", one))},
		"a rest whose length nobody knows, because DEL and ADD took long": {at(0, 10, add("a", one)), at(20, 60, del("a")), at(61, 121, add("b", one))},
		"DEL and ADD at the same time, the ADD ending late":               {at(0, 10, add("a", one)), at(20, 300, del("a")), at(25, 200, add("b", one))},
		"an ADD that began before the other's DEL":                        {at(0, 10, add("a", one)), at(15, 200, add("b", one)), at(20, 30, del("a"))},
		"a repeated ADD":                              {at(0, 10, add("a", one)), at(20, 30, refused("a")), at(40, 50, look("a", ""))},
		"DEL again and again":                         {at(0, 1, del("a")), at(2, 10, add("a", one)), at(20, 30, del("a")), at(31, 40, del("a")), at(41, 50, look("", ""))},
		"a killed ADD that did all":                   {at(0, 10, killedAdd("a")), at(20, 30, look("a", "")), at(40, 50, refused("a"))},
		"a killed ADD that did nothing":               {at(0, 10, killedAdd("a")), at(20, 30, look("", "")), at(40, 50, add("a", two)), at(41, 51, add("b", one))},
		"a killed ADD that nobody saw":                {at(0, 10, killedAdd("a")), at(20, 30, refused("a"))},
		"a failed ADD that took and gave back":        {at(0, 10, killedAdd("a")), at(4, 5, look("a", "")), at(6, 7, look("", "")), at(8, 20, add("b", one))},
		"an ADD that went on from what others held":   {at(0, 10, add("a", two)), at(4, 5, look("a", "")), at(20, 30, look("", "a"))},
		"a killed DEL that did all":                   {at(0, 10, add("a", one)), at(20, 30, killedDel("a")), at(40, 50, look("", "")), at(60, 120, add("b", one))},
		"a killed DEL that did nothing":               {at(0, 10, add("a", one)), at(20, 30, killedDel("a")), at(40, 50, look("a", "")), at(60, 70, del("a"))},
		"a killed GC that freed one of two":           {at(0, 10, add("a", one)), at(0, 10, add("b", two)), at(20, 30, killedGC("a", "b")), at(40, 50, look("", "b"))},
		"a death that is noticed, and one that isn't": {at(0, 10, add("a", one)), at(0, 10, add("b", two)), at(20, 300, death("a")), at(20, 300, death("b")), at(200, 210, look("", "b"))},
		"a death that is noticed late":                {at(0, 10, add("a", one)), at(20, 300, death("a")), at(30, 40, look("a", "")), at(150, 160, add("b", one))},
		"a GC frees what is not in its list":          {at(0, 10, add("a", one)), at(0, 10, add("b", two)), at(20, 30, gc("b", "c")), at(40, 50, look("a", ""))},
		"looks while it happens":                      {at(0, 30, add("a", one)), at(5, 6, look("", "")), at(7, 8, look("a", "")), at(40, 90, del("a")), at(45, 46, look("a", "")), at(47, 48, look("", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(calls, coolDown); err != nil {
				t.Error(err)
			}
		})
	}
}

// The error shows the calls that led to it.
func TestTheErrorTellsWhichCallsContradict(t *testing.T) {
	err := Check([]Call{at(0, 10, add("a", one)), at(20, 30, add("b", one))}, coolDown)
	want := `address 10.0.1.3: no order of the 2 calls is possible. The longest has 1, of which the last are
      0.000-   10.000 ms  process  0  ADD a -> 10.0.1.3
and none of these can follow:
     20.000-   30.000 ms  process  0  ADD b -> 10.0.1.3`
	if err == nil || err.Error() != want {
		t.Errorf("%v; want\n%s", err, want)
	}
}
