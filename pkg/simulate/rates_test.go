package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/aws"
	"github.com/enipool/enipool/pkg/cloud/bce"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// What is simulated is what the drivers tell who keeps to the rates of an account.
func TestTheRatesAreThoseOfTheDrivers(t *testing.T) {
	b, err := bce.New(bce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rates  Rates
		traits driver.Traits
		named  bool // what the rates do not name is nobody's number
	}{"EC2": {EC2(), aws.New(aws.Options{}).Traits(), false}, "BCE": {BCE(), b.Traits(), true}} {
		w := World{Mutating: c.rates.Mutating, Describing: c.rates.Describing, Buckets: c.rates.Buckets}
		same := 0
		for action, want := range c.traits.Buckets {
			if _, named := c.rates.Buckets[action]; c.named && !named {
				continue
			}
			got := w.bucket(Price{Request: action, Looks: strings.HasPrefix(action, "Describe")})
			if got.Burst != want.Burst || float64(time.Second/got.Every) != want.PerSecond {
				t.Errorf("%s: %s has %+v here, by the driver %+v", name, action, got, want)
			}
			same++
		}
		if same < 6 {
			t.Errorf("%s: only %d actions are compared", name, same)
		}
	}
}
