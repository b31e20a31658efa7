package agent

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// electing is a driver of a cloud that tells another of an ENI's IPv6 addresses as its primary
// one, from some time on.
type electing struct {
	driver.Driver
	other *bool
}

func (d electing) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	list, err := d.Driver.Interfaces(ctx, f)
	for k := range list {
		singles := slices.Clone(list[k].Singles)
		if i := slices.IndexFunc(singles, netip.Addr.Is6); *d.other && i >= 0 {
			list[k].V6, singles[i] = singles[i], list[k].V6
		}
		list[k].Singles = singles
	}
	return list, err
}

// Where EC2 does not tell which IPv6 address of an ENI is its primary one, an agent may take
// another for it than the one before did.
func TestAnotherPrimaryIPv6AddressStopsNoGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
		conf := testConfig("n1")
		conf.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6}
		n, other := w.addNode(conf, sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 9, V6: 9}, Subnet: "subnet-a"}), false
		n.over = func(inner driver.Driver) driver.Driver { return electing{inner, &other} }
		n.start(-1, false)
		for range 10 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
		n.stop()
		other = true
		n.start(-1, false)
		defer n.stop()
		sleep(10 * time.Minute)
		for range 10 {
			_ = n.add()
		}
		n.all(t, 10*time.Minute)
		if st := n.status(); st.Addresses.Lost > 0 || st.Problem != "" {
			t.Errorf("%+v, problem %q", st.Addresses, st.Problem)
		}
	})
}
