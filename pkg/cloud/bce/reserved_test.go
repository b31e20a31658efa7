package bce

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
)

// What a request for any address can have is what is outside of reserved ranges, where the cloud tells that.
func TestFreeAddressesOfReservedRangesAreNotFree(t *testing.T) {
	for text, want := range map[string]int{
		`{"availableIp": 4090, "availableUnreservedIp": 4060}`: 4060,
		`{"availableIp": 4090}`:                                4090,
		`{"availableIp": 40, "availableUnreservedIp": 0}`:      0,
		`{"availableIp": 40, "availableUnreservedIp": 41}`:     40,
		`{"availableIp": -1, "availableUnreservedIp": -1}`:     0,
	} {
		var a subnetAnswer
		must(t, json.Unmarshal([]byte(text), &a))
		if got := decodeSubnet(a).Free; got != want {
			t.Errorf("%s: %d are free, want %d", text, got, want)
		}
	}
}

// A describe shows the room that a reservation leaves.
func TestAReservationTakesRoom(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	d, _ := s.driver(t, "i-n1")
	region := engine.NewRegion(d, quick(engine.Options{Subnets: []string{"sbn-a", "sbn-b"}, Cluster: "blue"}))
	free := func() int {
		list, err := region.Subnets(t.Context())
		must(t, err)
		at := slices.IndexFunc(list, func(p cloud.Place) bool { return p.ID == "sbn-b" })
		return list[at].Free
	}
	before := free()
	must(t, region.Reserve(t.Context(), "sbn-b", netip.MustParsePrefix("10.0.4.64/26")))
	if got := free(); got != before-64 {
		t.Errorf("%d are free, %d before", got, before)
	}
}

// The answer's pages are put together, and what can't be is no reservation.
func TestReservationsComeFromAllPages(t *testing.T) {
	withKeys(t)
	k := setup{}
	k.endpoint.Keys, k.endpoint.MaxPage = map[string]string{accessKey: secretKey}, 2
	s := newSite(t, k)
	d, w := s.driver(t, "i-n1")
	var want []driver.Reservation
	for _, text := range []string{"10.0.4.16/28", "10.0.4.32/28", "10.0.4.48/32", "10.0.4.64/26", "10.0.4.128/26"} {
		r := driver.Reservation{Subnet: "sbn-b", Range: netip.MustParsePrefix(text), Note: "enipool/blue"}
		id, err := d.Reserve(t.Context(), r)
		must(t, err)
		r.ID = id
		want = append(want, r)
	}
	got, err := d.Reservations(t.Context(), "sbn-b")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	w.alter(reservePath, "10.0.4.48/32", "10.0.4.48") // as of a single address
	if got, err = d.Reservations(t.Context(), "sbn-b"); err != nil || !slices.Equal(got, want) {
		t.Errorf("with a single address: %+v, %v", got, err)
	}
	w.alter(reservePath, "10.0.4.48/32", "everything")
	if got, err = d.Reservations(t.Context(), "sbn-b"); err == nil {
		t.Errorf("what is no range is read as %+v", got)
	}
	w.alter(reservePath, `"nextMarker":"`, `"nextMarkerOf":"`)
	if got, err = d.Reservations(t.Context(), "sbn-b"); err == nil {
		t.Errorf("a list that does not go on is read as %+v", got)
	}
}
