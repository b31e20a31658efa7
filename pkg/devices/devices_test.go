package devices

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestADevicePerENISumsUpToWhatPodsCanHave(t *testing.T) {
	for _, tt := range []struct {
		name     string
		node     Node
		reserved map[string]int
		want     []Device
	}{
		{"nothing yet", Node{}, nil, nil},
		{"two ENIs attached of three", Node{Total: 45, ENIs: []string{"a", "b"}, PerENI: 15}, nil,
			[]Device{{"eni0", "a", 15}, {"eni1", "b", 15}, {"eni2", "", 15}}},
		{"fewer pods than slots", Node{Total: 20, ENIs: []string{"a"}, PerENI: 15}, nil,
			[]Device{{"eni0", "a", 15}, {"eni1", "", 5}}},
		{"what is reserved stays where it is when the node shrinks", Node{Total: 12, ENIs: []string{"a", "b"}, PerENI: 10}, map[string]int{"eni0": 5, "eni1": 5},
			[]Device{{"eni0", "a", 7}, {"eni1", "b", 5}}},
		{"all is reserved, and more", Node{Total: 3, ENIs: []string{"a"}, PerENI: 10}, map[string]int{"eni0": 2, "eni1": 4},
			[]Device{{"eni0", "a", 2}, {"eni1", "", 4}}},
		{"a node without room keeps what is reserved", Node{Total: 0, PerENI: 10}, map[string]int{"eni1": 4}, []Device{{"eni1", "", 4}}},
		{"an ENI that gets none now", Node{Total: 10, ENIs: []string{"a", "b"}, PerENI: 10}, nil, []Device{{"eni0", "a", 10}}},
		{"it is not known what an ENI carries", Node{Total: 7, ENIs: []string{"a"}}, nil, []Device{{"eni0", "a", 7}}},
		{"names that are no devices", Node{Total: 5, PerENI: 5}, map[string]int{"eni-1": 3, "eni07": 1, "gpu": 2, "eni999": 1}, []Device{{"eni0", "", 5}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.node.List(tt.reserved)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever happens to a node, the scheduler finds as much room as there is.
func TestTheSchedulerFindsExactlyTheRoomThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := Node{Total: rapid.IntRange(0, 3000).Draw(t, "total"), PerENI: rapid.IntRange(0, 50).Draw(t, "perENI")}
		reserved, sum := map[string]int{}, 0
		for range rapid.IntRange(0, 5).Draw(t, "devices") {
			name := prefix + strconv.Itoa(rapid.IntRange(0, Most-1).Draw(t, "place"))
			count := rapid.IntRange(1, 60).Draw(t, "count")
			sum += count - reserved[name]
			reserved[name] = count
		}
		list := node.List(reserved)
		room := 0
		for _, d := range list {
			if d.Addresses < 1 || d.Addresses < reserved[d.Name] {
				t.Fatalf("%+v, of which %d are reserved", d, reserved[d.Name])
			}
			room += d.Addresses - reserved[d.Name]
		}
		if want := max(node.Total-sum, 0); room != want || len(list) > Most {
			t.Fatalf("room for %d in %d devices, want %d", room, len(list), want)
		}
	})
}

func TestAPodCountsAsReservedOrNot(t *testing.T) {
	claims := []Claim{{Namespace: "ns", Name: "one", Devices: []string{"eni0"}}, {Namespace: "ns", Name: "two", Devices: []string{"eni0", "eni1"}}}
	for _, tt := range []struct {
		name             string
		pods             []Pod
		reserved, silent int
	}{
		{"no pods", nil, 0, 0},
		{"asks for the resource", []Pod{{Extended: 1}}, 1, 0},
		{"asks for nothing", []Pod{{}}, 0, 1},
		{"has a claim", []Pod{{Namespace: "ns", Claims: "one"}}, 1, 0},
		{"has one among others", []Pod{{Namespace: "ns", Claims: "gpu one"}}, 1, 0},
		{"a claim of that name elsewhere", []Pod{{Namespace: "other", Claims: "one"}}, 0, 1},
		{"its claims are of another driver", []Pod{{Namespace: "ns", Claims: "gpu"}}, 0, 1},
		{"its claims are not prepared yet", []Pod{{Namespace: "ns", Claims: "new", Starts: true}}, 1, 0},
		{"two share a claim of one address", []Pod{{Namespace: "ns", Claims: "one"}, {Namespace: "ns", Claims: "one", Starts: true}}, 1, 1},
		{"two share a claim of two", []Pod{{Namespace: "ns", Claims: "two"}, {Namespace: "ns", Claims: "two"}}, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if reserved, silent := Share(tt.pods, claims); reserved != tt.reserved || silent != tt.silent {
				t.Errorf("%d reserved and %d not, want %d and %d", reserved, silent, tt.reserved, tt.silent)
			}
		})
	}
	if diff := cmp.Diff(map[string]int{"eni0": 2, "eni1": 1}, Reserved(claims)); diff != "" {
		t.Error(diff)
	}
}

// A kubelet has claims unprepared once the containers have ended, and says so of the pod later: the scheduler counts them until then. A pod that
// has claims of another driver alone reserves nothing by ending.
func TestAPodThatEndsHasReservedWhatItHad(t *testing.T) {
	ours := []Claim{{UID: "1", Namespace: "ns", Name: "address", Devices: []string{"eni0"}}}
	pods := []Pod{{Namespace: "ns", Claims: "address"}, {Namespace: "ns", Claims: "gpu"}}
	var m Memory
	is := func(what string, pods []Pod, claims []Claim, reserved, silent int) {
		t.Helper()
		if r, s := m.Count(pods, claims); r != reserved || s != silent {
			t.Errorf("%s: %d reserved and %d not, want %d and %d", what, r, s, reserved, silent)
		}
	}
	is("prepared", pods, ours, 1, 1)
	is("unprepared", pods, nil, 1, 1)
	is("still there", pods, nil, 1, 1)
	is("of a kubelet that started again", pods, ours, 1, 1)
	is("unprepared again", pods, nil, 1, 1)
	is("gone", pods[1:], nil, 0, 1)
	is("another one by that name", pods, nil, 0, 2)
}
