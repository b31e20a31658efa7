package node

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/podrecord"
)

// Programs that set all links' settings again reset what host ports by 127.0.0.1 need.
func TestTheSettingThatHostPortsByTheLoopbackNeedIsPutBack(t *testing.T) {
	n, dev := withPod(t)
	var pod eni.Address
	if err := n.Cache.View(t.Context(), func(s *ipam.State) error { pod = s.Used()[0]; return nil }); err != nil {
		t.Fatal(err)
	}
	record := podrecord.Record{Key: pod.Owner.Key, Pod: pod.Owner.PodName(), Firewall: ipam.Nftables,
		Extras: netconf.Extras{Ports: []netconf.HostPort{{Transport: netconf.TCP, Port: 8080, PodPort: 80}}}}
	record.Addrs = append(record.Addrs, pod.Addr)
	if err := podrecord.Beside(n.Cache.Path).Write(record); err != nil {
		t.Fatal(err)
	}
	file := "/proc/sys/net/ipv4/conf/" + dev + "/route_localnet"
	for range 2 {
		if found, err := n.Check(t.Context()); err != nil || !strings.Contains(strings.Join(found, "\n"), "route_localnet is 0, want 1") {
			t.Errorf("%q, %v; want the setting named", found, err)
		}
		if lines, err := n.Sync(t.Context(), nil, nil); err != nil || !strings.Contains(strings.Join(lines, "\n"), "host ports of pod default/web: sysctl net/ipv4/conf/"+dev+"/route_localnet is 0") {
			t.Errorf("%q, %v; want the setting named", lines, err)
		}
		if value := nettest.Run(t, "cat", file); strings.TrimSpace(value) != "1" {
			t.Errorf("route_localnet is %q", value)
		}
		nettest.Run(t, "sh", "-c", "echo 0 > "+file)
	}
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	if found, err := n.Check(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%q, %v; want nothing wrong", found, err)
	}
}
