package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// changed lists the fields that differ.
func changed(a, b any) (names []string) {
	fields := func(v any) (f map[string]any) {
		text, _ := json.Marshal(v)
		_ = json.Unmarshal(text, &f)
		return f
	}
	x, y := fields(a), fields(b)
	for name := range y {
		if !reflect.DeepEqual(x[name], y[name]) {
			names = append(names, name)
		}
	}
	for name := range x {
		if _, is := y[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// What a new node with pods costs of writes of its object, by who writes what and why: each costs three watches a copy.
func TestWritesOfANewNode(t *testing.T) {
	inZoneOf(t, []sim.Subnet{subnet("subnet-a", "10.0.4.0/24")}, []eni.Limits{{ENIs: 2, V4: 40}}, 1, []int{2}, func(t *testing.T, z *zone) {
		n := z.addZoneNode("new", 2, eni.Limits{ENIs: 2, V4: 40})
		var writes []string
		z.wrote = func(old, next *crd.NodeNetwork) {
			switch {
			case next.Name != "new":
			case old == nil:
				writes = append(writes, fmt.Sprint("agent makes it: ", changed(crd.NodeNetworkSpec{}, next.Spec)))
			case reflect.DeepEqual(old.Spec, next.Spec):
				writes = append(writes, fmt.Sprint("operator: ", changed(old.Status, next.Status)))
			default:
				writes = append(writes, fmt.Sprint("agent: ", changed(old.Spec, next.Spec)))
			}
		}
		z.join(n)
		n.start(-1, false)
		defer n.stop()
		for range 30 {
			_ = n.add()
		}
		n.all(t, time.Minute)
		sleep(2 * time.Minute)
		want := []string{
			"agent makes it: [boot families mode pool]",
			// the describe: what the instance is, what it has, that the operator calls for it from now on
			"operator: [conditions describedAt enis epoch instance instanceType interfaces leaders limits mode observedGeneration revision zone]",
			"agent: [pool slots waiting waitingSince]", // what fits the instance
			"operator: [conditions enis observedGeneration revision slots]",
			"agent: [waiting waitingSince]",             // no pod waits any more
			"operator: [conditions observedGeneration]", // after ten seconds in which nothing else was to be told
		}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Nodes that come within a second are described together: it takes no more requests than one of them would.
func TestNodesThatComeTogetherAreDescribedTogether(t *testing.T) {
	inZoneOf(t, []sim.Subnet{subnet("subnet-a", "10.0.4.0/24")}, []eni.Limits{{ENIs: 2, V4: 40}}, 1, []int{2}, func(t *testing.T, z *zone) {
		before := z.account.Calls()[sim.ActDescribe]
		for i := range 4 {
			n := z.addZoneNode(fmt.Sprint("new-", i), 2, eni.Limits{ENIs: 2, V4: 40})
			z.join(n)
			n.start(-1, false)
			defer n.stop()
			sleep(200 * time.Millisecond)
		}
		sleep(5 * time.Second)
		if n := z.account.Calls()[sim.ActDescribe] - before; n > 2 {
			t.Errorf("%d describes of four nodes that came within a second", n)
		}
	})
}
