package netconf_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

func TestTheDefaultMaskIsNobodyElses(t *testing.T) {
	if w := netconf.MaskWarning(ipam.DefaultMarkMask); w != "" {
		t.Error(w)
	}
	all := ipam.DefaultMarkMask
	for _, u := range netconf.MarkUsers() {
		all |= u.Mask
	}
	if free := ^all; free&(free-1) != 0 && ipam.ValidMarkMask(free) == nil {
		t.Errorf("%#08x is free too", free)
	}
}

func TestAMaskThatIsAlsoAnothersIsWarnedOfWithItsName(t *testing.T) {
	for mask, names := range map[uint32][]string{
		0x00ff0000: {"Calico", "Tailscale", "Cilium"},
		0xff000000: {"Calico", "Cilium"},
		0x00003fc0: {"portmap", "Cilium"},
	} {
		got := netconf.MaskWarning(mask)
		for _, u := range netconf.MarkUsers() {
			want := false
			for _, name := range names {
				want = want || name == u.Name
			}
			if strings.Contains(got, u.Name) != want {
				t.Errorf("mask %#08x: %q, names %s: %v, want %v", mask, got, u.Name, !want, want)
			}
		}
	}
}

func TestThePageAboutMarksNamesEveryMask(t *testing.T) {
	page, err := os.ReadFile("MARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range append(netconf.MarkUsers(), netconf.MarkUser{Name: "enipool", Mask: ipam.DefaultMarkMask}) {
		if row := fmt.Sprintf("| %s | `%#08x` |", u.Name, u.Mask); !strings.Contains(string(page), row) {
			t.Errorf("the page lacks %s", row)
		}
	}
}
