package host

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

func routeLoopback(hostDev string) netconf.Sysctl {
	return netconf.Sysctl{Key: "net/ipv4/conf/" + hostDev + "/route_localnet", Value: "1"}
}

// RouteLoopback lets the node reach the pod from its loopback addresses, by host
// ports. The firewall keeps the pod from reaching them.
func (h *Host) RouteLoopback(hostDev string) error { return writeSysctl(routeLoopback(hostDev)) }

// CheckLoopback returns a line where the setting that RouteLoopback makes has another value by
// now, and none for a link that is gone.
func (h *Host) CheckLoopback(hostDev string) ([]string, error) {
	want := routeLoopback(hostDev)
	value, err := readSysctl(want.Key)
	switch {
	case errors.Is(err, unix.ENOENT) || err == nil && value == want.Value:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read sysctl %s: %w", want.Key, err)
	}
	return []string{fmt.Sprintf("sysctl %s is %s, want %s", want.Key, value, want.Value)}, nil
}
