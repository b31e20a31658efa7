package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// kill ends the sandboxes without a DEL and waits for their links to go.
func (v *vpc) kill(ids ...string) {
	v.t.Helper()
	for _, id := range ids {
		v.pods[id].Delete()
	}
	ctx, cancel := deadline(v.t)
	defer cancel()
	for len(v.links("eni")) > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// takenFrom says what is wrong with an error that should refuse a port of the pod.
func takenFrom(err error, pod string) error {
	var e *types.Error
	if !errors.As(err, &e) || e.Code != 102 || !strings.Contains(e.Msg, "tcp port 8080 is taken by pod "+pod) {
		return fmt.Errorf("error %v, want code 102 and that pod %s has the port", err, pod)
	}
	return nil
}

// An owner that the node cache does not know may live: its line may be damaged.
func TestAHostPortStaysWithALivingPodWhoseLineOfTheNodeCacheIsDamaged(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
	v.plugin("DEL", "b")
	answerAll(t, v.pods["a"], "80")
	overwrite(t, v.n.Cache.Path, "pods a eth0", "pods x eth0")
	if err := takenFrom(v.newAttachment(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(8080, 80)}}).add(), "a"); err != nil {
		t.Error(err)
	}
	for _, to := range []string{"10.0.0.11:80", "10.0.0.10:8080"} {
		if seen := query(v.internet, "tcp", to); seen != internet4 {
			t.Errorf("%s after the refusal: %s", to, seen)
		}
	}
	overwrite(t, v.n.Cache.Path, "pods x eth0", "pods a eth0")
}

// Its sandbox is gone as well as its line: nobody else frees the port.
func TestAHostPortOfADeadSandboxIsFreeWithoutItsLineOfTheNodeCache(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
	v.plugin("DEL", "b")
	v.kill("a")
	overwrite(t, v.n.Cache.Path, "pods a eth0", "pods x eth0")
	answerAll(t, v.pods["b"], "80")
	v.must(v.newAttachment(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(8080, 80)}}).add())
	if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != internet4 {
		t.Errorf("the new pod saw %s", seen)
	}
	overwrite(t, v.n.Cache.Path, "pods x eth0", "pods a eth0")
}

// One ADD frees as many dead owners as stand in its way.
func TestHostPortsOfSeveralDeadSandboxesAreFree(t *testing.T) {
	for name, dead := range map[string]func(v *vpc){
		"a port of each": func(v *vpc) {
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
			v.replacePod(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(8081, 80)}})
			v.kill("a", "b")
		},
		"one port of two networks": func(v *vpc) {
			v.plugin("DEL", "a")
			v.plugin("DEL", "b")
			v.call("ADD", inPods, sharedPort)
			v.call("ADD", inStorage, sharedPort)
			v.t.Cleanup(func() { v.call("DEL", inPods); v.call("DEL", inStorage) })
			v.kill("a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
			free := eni.Address{Addr: netip.MustParseAddr("10.0.0.22"), ENI: 1} // so that nobody looks for the dead
			v.must(v.net.Assign("eni-1", free.Addr))
			inv := v.inv
			inv.Addresses = append(slices.Clone(inv.Addresses), free)
			v.load(inv)
			dead(v)
			v.pods["c"] = nettest.NewNetns(t, "pod-c")
			answerAll(t, v.pods["c"], "80")
			v.must(v.newAttachment(v.builtIn(), "c", map[string]any{"portMappings": []port{tcp(8080, 80), tcp(8081, 80)}}).add())
			for _, to := range []string{"10.0.0.10:8080", "10.0.0.20:8081"} {
				if seen := query(v.internet, "tcp", to); seen != internet4 {
					t.Errorf("%s: %s", to, seen)
				}
			}
		})
	}
}
