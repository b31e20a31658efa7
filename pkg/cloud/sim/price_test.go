package sim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// priced is an account in which making an ENI is three requests.
func priced(o Options) Options {
	o.Mutating, o.Describing = Bucket{Burst: 3, Every: time.Second}, Bucket{Burst: 2, Every: time.Second}
	o.Prices = map[string][]Price{
		"Interfaces":      {{Request: "List", Looks: true, Count: 2, Tries: 9}},
		"AssignAddresses": {{Request: "Assign", Each: 2}},
		"CreateInterface": {{Request: "Create"}, {Request: "Attach", Later: true}, {Request: "List", Looks: true, Later: true}},
	}
	return o
}

func TestEachKindOfRequestHasItsOwnBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, priced(Options{Buckets: map[string]Bucket{"Attach": {Burst: 1, Every: time.Hour}}}))
		n := a.Old("n1")
		made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1})
		must(t, err)
		_, err = n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 5) // three requests
		must(t, err)
		_, err = n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 1)
		var e *cloud.Error
		if !errors.As(err, &e) || e.Kind != cloud.ErrThrottled || e.RetryAfter != 0 {
			t.Errorf("a fourth request at once: %v", err)
		}
		_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 1})
		if !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("an ENI that may not be attached: %v", err)
		}
		_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 1})
		if !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("the same again: %v", err)
		}
		want := map[string]Requests{"Create": {Passed: 2}, "Attach": {Passed: 1, Refused: 2}, "List": {Passed: 1}, "Assign": {Passed: 3, Refused: 1}}
		if diff := cmp.Diff(want, a.Requests()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		time.Sleep(time.Hour)
		_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 1})
		must(t, err)
		if got := a.Requests(); got["Create"].Passed != 2 || got["Attach"].Passed != 2 {
			t.Errorf("what was made is made again: %v", got)
		}
	})
}

func TestWhatIsRefusedIsTriedAsOftenAsItsClientTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, priced(Options{}))
		begin := time.Now()
		for range 3 { // six requests: two at once, and one a second
			_, err := a.Old("n1").Interfaces(t.Context())
			must(t, err)
		}
		if got := a.Requests()["List"]; got.Passed != 6 || got.Refused == 0 || time.Since(begin) < 4*time.Second {
			t.Errorf("%+v after %s", got, time.Since(begin))
		}
	})
}

func TestAPriceIsForSoManyAddresses(t *testing.T) {
	for _, tt := range []struct {
		price           Price
		addresses, want int
	}{
		{Price{}, 0, 1}, {Price{}, 100, 1}, {Price{Count: 3}, 7, 3}, {Price{Each: 10}, 0, 1}, {Price{Each: 10}, 10, 1}, {Price{Each: 10}, 11, 2}, {Price{Each: 10, Count: 2}, 21, 6},
	} {
		if got := tt.price.Of(tt.addresses); got != tt.want {
			t.Errorf("%+v for %d addresses is %d, want %d", tt.price, tt.addresses, got, tt.want)
		}
	}
}
