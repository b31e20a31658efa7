package e2e

import (
	"encoding/json"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
)

// The name servers of the configuration are in the result of every version; without
// any, those that a plugin before us in the chain gave stay.
func TestTheConfigurationsNameServersAreInTheResult(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 1)
	ns := nettest.NewNetns(t, "pod")
	want := types.DNS{Nameservers: []string{"10.0.0.2", "10.0.0.3"}, Domain: "pods.local", Search: []string{"local"}, Options: []string{"ndots:5"}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	add := func(version, more string) types.DNS {
		t.Helper()
		a := n.mustRun(call{command: "ADD", id: "pod", netns: ns.Path, conf: n.conf(version, more)})
		n.mustRun(call{command: "DEL", id: "pod", netns: ns.Path, conf: n.conf(version, more)})
		var res struct{ DNS types.DNS }
		if err := json.Unmarshal([]byte(a.stdout), &res); err != nil {
			t.Fatal(err)
		}
		return res.DNS
	}
	for _, v := range version.All.SupportedVersions() {
		if diff := cmp.Diff(want, add(v, `"dns":`+string(text))); diff != "" {
			t.Errorf("%s: %s", v, diff)
		}
	}
	prev := `"prevResult":{"cniVersion":"1.0.0","dns":` + string(text) + `}`
	if diff := cmp.Diff(want, add("1.0.0", prev)); diff != "" {
		t.Errorf("of the plugin before: %s", diff)
	}
	other := types.DNS{Nameservers: []string{"10.9.9.9"}}
	if diff := cmp.Diff(other, add("1.0.0", prev+`,"dns":{"nameservers":["10.9.9.9"]}`)); diff != "" {
		t.Errorf("ours after another's: %s", diff)
	}
}

// A configuration that asks for another plugin's addresses is refused, with key and value.
func TestAnIPAMSectionBesideEnipoolIsRefused(t *testing.T) {
	n := newNode(t, ipam.Settings{}, 1)
	ns := nettest.NewNetns(t, "pod")
	conf := n.conf("1.0.0", `"ipam":{"type":"host-local","subnet":"10.1.0.0/24"}`)
	e := n.run(call{command: "ADD", id: "pod", netns: ns.Path, conf: conf}).cniError(t)
	const want = `ipam: {"type":"host-local","subnet":"10.1.0.0/24"}: must be absent: enipool brings its own addresses, and its options stand beside "type"`
	if e.Code != 7 || e.Msg != want {
		t.Errorf("code %d: %s", e.Code, e.Msg)
	}
	n.mustRun(call{command: "DEL", id: "pod", netns: ns.Path, conf: conf}) // which must not fail for it
}
