package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// A runtime that knows the capability passes the annotations of pods. One that does not know it passes nothing, and
// the same network configuration serves its pods as before.
func TestARuntimePassesWhichTopologyAPodIsOf(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 1, 2)
	conflist := list(t, fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","plugins":[%s]}`,
		n.conf("1.0.0", `"capabilities":{"portMappings":true,"`+config.AnnotationsCapability+`":true}`)))
	cni := libcni.NewCNIConfigWithCacheDir(filepath.SplitList(cniPath(t)), t.TempDir(), nil)
	runtime := func(id, pod string, capabilities map[string]any) *libcni.RuntimeConf {
		return &libcni.RuntimeConf{ContainerID: id, NetNS: nettest.NewNetns(t, id).Path, IfName: "eth0", CapabilityArgs: capabilities,
			Args: [][2]string{{"K8S_POD_NAMESPACE", "db"}, {"K8S_POD_NAME", pod}}}
	}
	annotated := map[string]any{config.AnnotationsCapability: map[string]string{eni.TopologyAnnotation: "db", "kubectl.kubernetes.io/x": "{}"}}

	pod := runtime("first", "db-0", annotated)
	_, err := cni.AddNetworkList(t.Context(), conflist, pod)
	var refused *types.Error
	if want := "pod db/db-0 waits for its address of topology db: "; !errors.As(err, &refused) || refused.Code != types.ErrTryAgainLater || !strings.Contains(refused.Msg, want) {
		t.Fatalf("%v, want code 11: %s", err, want)
	}
	addr := netip.MustParseAddr("10.0.1.11")
	n.reserve(addr, "db-0")
	n.wantState(addr, "reserved")
	if _, err := cni.AddNetworkList(t.Context(), conflist, pod); err != nil {
		t.Fatal(err)
	}
	n.wantState(addr, "used by first")
	if err := cni.CheckNetworkList(t.Context(), conflist, pod); err != nil {
		t.Error(err)
	}
	plain := runtime("plain", "web", nil)
	if _, err := cni.AddNetworkList(t.Context(), conflist, plain); err != nil {
		t.Fatal(err)
	}
	n.wantState(netip.MustParseAddr("10.0.0.10"), "used by plain")
	for _, rt := range []*libcni.RuntimeConf{pod, plain} {
		if err := cni.DelNetworkList(t.Context(), conflist, rt); err != nil {
			t.Error(err)
		}
	}
	n.wantState(addr, "reserved")
}

// wantState wants an address in a state.
func (n *node) wantState(addr netip.Addr, want string) {
	n.t.Helper()
	n.view(func(s *ipam.State) {
		for _, a := range s.Addresses {
			got := a.State.String()
			if a.State == eni.Used {
				got += " by " + a.Owner.Container
			}
			if a.Addr == addr && got != want {
				n.t.Errorf("%s is %s, want %s", addr, got, want)
			}
		}
	})
}
