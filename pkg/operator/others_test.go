package operator

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// nics reads ENIs: "id index address address", one a line. Those of index 0 are primary.
func nics(t *testing.T, text string) (list []cloud.Interface) {
	t.Helper()
	for line := range strings.Lines(text) {
		var nic cloud.Interface
		var addrs string
		if n, _ := fmt.Sscan(strings.Replace(strings.TrimSpace(line), " ", "\n", 2), &nic.ID, &nic.Index); n < 2 {
			continue
		}
		if fields := strings.Fields(line); len(fields) > 2 {
			addrs = strings.Join(fields[2:], " ")
		}
		for _, a := range strings.Fields(addrs) {
			nic.Addresses = append(nic.Addresses, netip.MustParseAddr("10.0.0."+a))
		}
		nic.Ours = nic.Index != 0 && nic.ID != "theirs"
		list = append(list, nic)
	}
	return list
}

func TestWhatChangedTellsHowManyRequestsItTook(t *testing.T) {
	one := func(part string) []string {
		if part == "Bind" {
			return nil // as on a cloud where ENIs outlive their instance
		}
		return []string{part}
	}
	for _, tt := range []struct {
		name, before, after string
		perAssign           int
		want                map[string]int
	}{
		{"nothing", "a 0 1\nb 1 5 6", "a 0 1\nb 1 6 5", 0, nil},
		{"some addresses came by one request", "b 1 5", "b 1 5 6 7 8", 0, map[string]int{"Assign": 1}},
		{"ten a request", "b 1", "b 1 1 2 3 4 5 6 7 8 9 10 11", 10, map[string]int{"Assign": 2}},
		{"some came and some went", "b 1 5 6", "b 1 6 7", 0, map[string]int{"Assign": 1, "Unassign": 1}},
		{"on the primary ENI", "a 0 5", "a 0 6 7", 0, map[string]int{"Assign.Primary": 1, "Unassign.Primary": 1}},
		{"an ENI came with its addresses", "a 0", "a 0\nb 1 5 6", 0, map[string]int{"Create": 1, "Attach": 1}},
		{"one is begun", "", "b -1 5", 0, map[string]int{"Create": 1}},
		{"and attached, with more", "b -1 5", "b 2 5 6", 0, map[string]int{"Attach": 1, "Assign": 1}},
		{"one is taken off", "b 2 5", "b -1 5", 0, map[string]int{"Detach": 1}},
		{"one went", "b 1 5", "", 0, map[string]int{"Detach": 1, "Delete": 1}},
		{"what others attach is not the agent's", "", "theirs 2 7", 0, nil},
	} {
		got := requestsBetween(nics(t, tt.before), nics(t, tt.after), one, tt.perAssign)
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestOthersAreEstimatedByTheirDescribesAndChanges(t *testing.T) {
	describe := []string{"Look", "Subnets"}
	for _, tt := range []struct {
		name    string
		nodes   int
		changes map[string]int
		took    time.Duration
		before  map[string]float64
		want    map[string]float64
	}{
		{"nobody", 0, nil, 0, map[string]float64{"Look": 1}, nil},
		{"300 nodes describe each second", 300, nil, 0, nil, map[string]float64{"Look": 1, "Subnets": 1}},
		{"before there were two describes nothing has changed", 300, map[string]int{"Assign": 9}, 0, nil, map[string]float64{"Look": 1, "Subnets": 1}},
		{"150 assignments in five minutes", 300, map[string]int{"Assign": 150}, 5 * time.Minute, nil, map[string]float64{"Look": 1, "Subnets": 1, "Assign": 0.5}},
		{"it falls by half", 300, nil, 5 * time.Minute, map[string]float64{"Assign": 2, "Look": 1, "Create": 0.001}, map[string]float64{"Look": 1, "Subnets": 1, "Assign": 1}},
		{"and rises at once", 300, map[string]int{"Assign": 900}, 5 * time.Minute, map[string]float64{"Assign": 2}, map[string]float64{"Look": 1, "Subnets": 1, "Assign": 3}},
	} {
		if got := estimate(tt.nodes, describe, tt.changes, tt.took, tt.before); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
