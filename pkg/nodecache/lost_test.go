package nodecache

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

func TestALostAddressStaysItsOwnersAndIsNobodysAfter(t *testing.T) {
	c := newCache(t, pool(2))
	addr, err := pick(c, "web")
	if err != nil {
		t.Fatal(err)
	}
	lose := func(s *ipam.State) error { s.MarkLost([]netip.Addr{addr}, time.Hour); return nil }
	if err := c.Update(t.Context(), lose); err != nil {
		t.Fatal(err)
	}
	if text := string(bytesOf(t, c.Path)); strings.Count(text, " lost ") != 1 {
		t.Errorf("the file does not say lost once:\n%s", text)
	}
	if held := get(t, c).OwnedBy(key("web")); len(held) != 1 || !held[0].Lost {
		t.Errorf("its owner holds %+v, want the lost address", held)
	}
	// Another's ADD does not even see it; the owner's DEL sends it away.
	if other, err := pick(c, "db"); err != nil || other == addr {
		t.Errorf("another got %s, %v", other, err)
	}
	release := func(s *ipam.State) error { s.Free(key("web"), time.Hour); return nil }
	if err := c.For(key("web")).Update(t.Context(), release); err != nil {
		t.Fatal(err)
	}
	for _, a := range get(t, c).Addresses {
		if a.Addr == addr && a.State != eni.Releasing {
			t.Errorf("after its pod it is %s, want releasing", a.State)
		}
	}
}

func TestUpdateRefusesANewLayout(t *testing.T) {
	c := newCache(t, pool(2))
	before := bytesOf(t, c.Path)
	err := c.Update(t.Context(), func(s *ipam.State) error {
		s.Addresses = s.Addresses[:1]
		return nil
	})
	if err == nil || string(before) != string(bytesOf(t, c.Path)) {
		t.Errorf("error %v; want a refusal and the file as it was", err)
	}
}
