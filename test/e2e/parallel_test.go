package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// addAll starts an ADD for each sandbox at once and returns the addresses of
// those that succeed.
func (n *node) addAll(ids []string, paths map[string]string) map[string]netip.Addr {
	n.t.Helper()
	cmds, outs := map[string]*exec.Cmd{}, map[string]*bytes.Buffer{}
	for _, id := range ids {
		cmd := n.cmd(call{command: "ADD", id: id, netns: paths[id], conf: n.conf("1.0.0")})
		outs[id] = &bytes.Buffer{}
		cmd.Stdout = outs[id]
		if err := cmd.Start(); err != nil {
			n.t.Fatal(err)
		}
		cmds[id] = cmd
	}
	got := map[string]netip.Addr{}
	for id, cmd := range cmds {
		if cmd.Wait() != nil {
			continue
		}
		var res struct {
			IPs []struct{ Address netip.Prefix }
		}
		if err := json.Unmarshal(outs[id].Bytes(), &res); err != nil || len(res.IPs) != 1 {
			n.t.Fatalf("add %s: %v\n%s", id, err, outs[id])
		}
		got[id] = res.IPs[0].Address.Addr()
	}
	return got
}

func pods(t *testing.T, count int) (ids []string, paths map[string]string) {
	paths = map[string]string{}
	for i := range count {
		id := fmt.Sprintf("pod%d", i)
		ids = append(ids, id)
		paths[id] = nettest.NewNetns(t, id).Path
	}
	return ids, paths
}

func distinct(t *testing.T, got map[string]netip.Addr) {
	t.Helper()
	owner := map[netip.Addr]string{}
	for id, a := range got {
		if other, twice := owner[a]; twice {
			t.Errorf("%s and %s both have %s", id, other, a)
		}
		owner[a] = id
	}
}

func TestAHundredAddsAtOnceGetDistinctAddressesInENIOrder(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run("routing "+routing.String(), func(t *testing.T) {
			n := newNode(t, ipam.Settings{Routing: routing}, 30, 40, 50)
			ids, paths := pods(t, 100)
			got := n.addAll(ids, paths)
			if len(got) != 100 {
				t.Errorf("%d of 100 succeeded", len(got))
			}
			distinct(t, got)
			n.view(func(s *ipam.State) {
				for i, want := range []int{30, 40, 30} {
					used := s.Count(0, func(a eni.Address) bool { return a.ENI == i }).Used
					if used != want {
						t.Errorf("ENI %d has %d used addresses, want %d", i, used, want)
					}
				}
			})
			for _, id := range ids {
				n.mustRun(call{command: "DEL", id: id, netns: paths[id], conf: n.conf("1.0.0")})
			}
		})
	}
}

func TestAPoolOfSixtyServesExactlySixtyOfAHundred(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 20, 40)
	ids, paths := pods(t, 100)
	got := n.addAll(ids, paths)
	if len(got) != 60 {
		t.Errorf("%d of 100 succeeded, want 60", len(got))
	}
	distinct(t, got)
	deleted := 0
	for id := range got {
		if deleted++; deleted > 40 {
			break
		}
		n.mustRun(call{command: "DEL", id: id, netns: paths[id], conf: n.conf("1.0.0")})
		delete(got, id)
	}
	n.mustRun(call{command: "GC", conf: n.conf("1.1.0", `"cni.dev/valid-attachments":[]`)})
}
