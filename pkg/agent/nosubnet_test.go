package agent

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// Where a plan makes no ENI people are told why. A subnet that may have prefixes that it does not show takes one only with an address
// for the primary one, and where no other subnet is surer.
func TestASubnetTakesAnENIForPeopleWhereItDoesForThePlan(t *testing.T) {
	hidden, empty := cloud.Subnet{ID: "subnet-a", New: true, Reserves: true, Free: 3}, cloud.Subnet{ID: "subnet-a", New: true, Reserves: true}
	surer := cloud.Subnet{ID: "subnet-b", New: true, Free: 100}
	refused := backoffs{newENIsIn("subnet-b"): {until: 2 * time.Hour, times: 1, err: cloud.ErrForbidden}}
	for _, tt := range []struct {
		name     string
		subnets  []cloud.Subnet
		backoffs backoffs
		want     []pool.Kind
	}{
		{"with an address for the primary one", []cloud.Subnet{hidden}, backoffs{}, nil},
		{"without one", []cloud.Subnet{empty}, backoffs{}, []pool.Kind{pool.SubnetFull}},
		{"beside one that is surer", []cloud.Subnet{hidden, surer}, backoffs{}, nil},
		{"beside one that is surer and refused", []cloud.Subnet{hidden, surer}, refused, []pool.Kind{pool.Forbidden}},
		{"not for new ENIs", []cloud.Subnet{{ID: "subnet-c", Free: 100}}, backoffs{}, []pool.Kind{pool.NoSubnet}},
	} {
		r := reasons{now: time.Hour, look: time.Hour, backoffs: tt.backoffs, full: func(string) bool { return false },
			view: &view{known: true, subnets: tt.subnets, limits: eni.Limits{ENIs: 3, V4: 33, V4Block: eni.Block{Bits: 28, Size: 16}}}}
		var got []pool.Kind
		for _, c := range r.noSubnet(1) {
			got = append(got, c.Kind)
		}
		if len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
