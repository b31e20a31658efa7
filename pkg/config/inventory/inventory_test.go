package inventory

import (
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const sample = "../../../conf/inventory.yaml"

func TestTheSampleInventoryParses(t *testing.T) {
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	settings := ipam.Settings{SNAT: true, MarkMask: 0x000000ff, CoolDown: 30 * time.Second,
		VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Families: []eni.Family{eni.IPv4}}
	if diff := cmp.Diff(settings, got.Settings, compare); diff != "" || !got.AnyFirewall {
		t.Errorf("any firewall %t, %s", got.AnyFirewall, diff)
	}
	if diff := cmp.Diff(lines(`
		0 eni-a eth0 mtu 1500 10.0.0.10/24 via 10.0.0.1 - via -
		1 eni-b eth1 mtu 0 10.0.0.20/24 via 10.0.0.1 - via -`), printENIs(got)); diff != "" {
		t.Error(diff)
	}
	if len(got.Addresses) != 2+2+16 {
		t.Errorf("%d addresses", len(got.Addresses))
	}
	got.ENIs[1].MTU = 1500
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

// TestTheSampleInventoryExplainsEveryKey finds the keys where the parser has
// them. Those of IPv6 may stand in a comment: the sample has none.
func TestTheSampleInventoryExplainsEveryKey(t *testing.T) {
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []any{rawInventory{}, rawENI{}} {
		for field := range fields(reflect.TypeOf(raw)) {
			key := field.Tag.Get("yaml")
			if key == "" {
				t.Errorf("%s of %T has no key", field.Name, raw)
			}
			uses := strings.Contains(string(text), key+":")
			if strings.HasSuffix(key, "6") {
				uses = strings.Contains(string(text), key)
			}
			if !uses {
				t.Errorf("%s does not show %s", sample, key)
			}
		}
	}
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

var compare = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

// lines takes the indentation off a literal.
func lines(indented string) string {
	var b strings.Builder
	for line := range strings.Lines(indented) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func printENIs(inv Inventory) string {
	var b strings.Builder
	dash := func(v interface {
		IsValid() bool
		String() string
	}) string {
		if v.IsValid() {
			return v.String()
		}
		return "-"
	}
	for _, e := range inv.ENIs {
		fmt.Fprintf(&b, "%d %s %s mtu %d %s via %s %s via %s\n", e.Index, e.ID, e.Device, e.MTU,
			dash(e.V4.Primary), dash(e.V4.Gateway), dash(e.V6.Primary), dash(e.V6.Gateway))
	}
	return b.String()
}

func printAddresses(inv Inventory) string {
	var b strings.Builder
	for _, a := range inv.Addresses {
		fmt.Fprintf(&b, "%s %d %s\n", a.Addr, a.ENI, a.State)
	}
	return b.String()
}

// small is the least that makes sense, with more settings before it.
func small(settings string) []byte {
	return []byte(settings + `
vpcCIDRs: [10.0.0.0/16]
enis:
- {id: eni-a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1, addresses: [10.0.0.11]}
`)
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		text string
		want func(*Inventory)
	}{
		{"", func(*Inventory) {}},
		{"routing: map\nfirewall: auto\nsnat: true\ncoolDown: 30s\nmarkMask: 0x000000ff\nfamilies: [ipv4]", func(*Inventory) {}},
		{"routing: rule", func(i *Inventory) { i.Settings.Routing = ipam.Rule }},
		{"firewall: iptables", func(i *Inventory) { i.Settings.Firewall, i.AnyFirewall = ipam.Iptables, false }},
		{"firewall: nftables", func(i *Inventory) { i.AnyFirewall = false }},
		{"snat: false", func(i *Inventory) { i.Settings.SNAT = false }},
		{"coolDown: 0s", func(i *Inventory) { i.Settings.CoolDown = 0 }},
		{"coolDown: 1h", func(i *Inventory) { i.Settings.CoolDown = time.Hour }},
		{`markMask: "0xff"`, func(i *Inventory) { i.Settings.MarkMask = 0xff }},
		{"markMask: 0xff", func(i *Inventory) { i.Settings.MarkMask = 0xff }},
		{"families: [ipv6]", func(i *Inventory) { i.Settings.Families = []eni.Family{eni.IPv6} }},
		{"families: [ipv6, ipv4]", func(i *Inventory) { i.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6} }},
		{"families: []", func(*Inventory) {}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := Parse(small(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			want := Inventory{AnyFirewall: true}
			want.Settings = ipam.Settings{SNAT: true, MarkMask: 0x000000ff, CoolDown: 30 * time.Second,
				VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Families: []eni.Family{eni.IPv4}}
			tt.want(&want)
			got.ENIs, got.Addresses = nil, nil
			if diff := cmp.Diff(want, got, compare, cmpopts.IgnoreUnexported(ipam.State{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPrefixStandsForItsAddressesAndENIsKeepTheirOrder(t *testing.T) {
	got, err := Parse([]byte(`
snat: false
enis:
- id: eni-b
  device: eth1
  primary: 10.0.0.20/24
  gateway: 10.0.0.1
  primary6: 2001:db8::20/64
  gateway6: fe80::1
  addresses: [10.0.0.32/30, "2001:db8::100/127"]
- id: eni-a
  device: eth0
  mtu: 9001
  primary: "2001:db8:1::10/64"
  gateway: "2001:db8:1::1"
  addresses: [2001:db8:1::11, 2001:db8:1::12/128]
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(`
		0 eni-b eth1 mtu 0 10.0.0.20/24 via 10.0.0.1 2001:db8::20/64 via fe80::1
		1 eni-a eth0 mtu 9001 - via - 2001:db8:1::10/64 via 2001:db8:1::1`), printENIs(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(lines(`
		10.0.0.32 0 free
		10.0.0.33 0 free
		10.0.0.34 0 free
		10.0.0.35 0 free
		2001:db8::100 0 free
		2001:db8::101 0 free
		2001:db8:1::11 1 free
		2001:db8:1::12 1 free`), printAddresses(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("[ipv4 ipv6]", fmt.Sprint(got.Settings.Families)); diff != "" {
		t.Errorf("families: %s", diff)
	}
}

func TestWithoutAddressesAPodGetsTheFamiliesOfThePrimaries(t *testing.T) {
	for text, want := range map[string]string{
		"{id: a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1}":                                                   "[ipv4]",
		"{id: a, device: eth0, primary: 2001:db8::10/64, gateway: fe80::1}":                                                 "[ipv6]",
		"{id: a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1, primary6: '2001:db8::10/64', gateway6: 'fe80::1'}": "[ipv4 ipv6]",
	} {
		got, err := Parse([]byte("snat: false\nenis: [" + text + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fmt.Sprint(got.Settings.Families)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestTheLargestPrefix(t *testing.T) {
	list, ok := expandPrefix("255.255.0.0/16")
	if !ok || len(list) != maxExpand || list[len(list)-1] != netip.MustParseAddr("255.255.255.255") {
		t.Errorf("%t, %d addresses", ok, len(list))
	}
	if list, ok := expandPrefix("10.0.0.0/15"); ok {
		t.Errorf("expanded to %d addresses", len(list))
	}
}

func TestInventoryErrorsNameKeyAndValue(t *testing.T) {
	const own = "- {id: eni-a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1}"
	for _, tt := range []struct{ name, text, want string }{
		{"routing", "routing: bgp\nsnat: false\nenis:\n" + own, `routing: "bgp": must be map or rule`},
		{"firewall", "firewall: pf\nsnat: false\nenis:\n" + own, `firewall: "pf": must be auto, nftables or iptables`},
		{"coolDown", "coolDown: soon\nsnat: false\nenis:\n" + own, `coolDown: "soon": must be a duration like "30s", at most "1h"`},
		{"negative coolDown", "coolDown: -1s\nsnat: false\nenis:\n" + own, `coolDown: "-1s": must be a duration like "30s", at most "1h"`},
		{"long coolDown", "coolDown: 61m\nsnat: false\nenis:\n" + own, `coolDown: "61m": must be a duration like "30s", at most "1h"`},
		{"markMask", "markMask: '0xf0f'\nsnat: false\nenis:\n" + own, `markMask: "0xf0f": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"markMask as a number", "markMask: 0xF0F\nsnat: false\nenis:\n" + own, `markMask: "0xF0F": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"kube-proxy's markMask", "markMask: '0xff00'\nsnat: false\nenis:\n" + own, `markMask: "0xff00": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff`},
		{"vpcCIDRs", "vpcCIDRs: [10.0.0.0/16, 10.1.0.1/16]\nenis:\n" + own, `vpcCIDRs[1]: "10.1.0.1/16": must be a range like 10.0.0.0/16, without host bits`},
		{"SNAT without a VPC", "enis:\n" + own, `vpcCIDRs: "[]": must be the VPC's ranges when snat is true, so that pods keep their addresses inside it`},
		{"families", "families: [ipv4, ipx]\nsnat: false\nenis:\n" + own, `families[1]: "ipx": must be ipv4 or ipv6`},
		{"no ENI", "snat: false", `enis: "[]": must be a list of at least the node's primary ENI`},
		{"primary", "snat: false\nenis:\n- {id: a, device: eth0, primary: 10.0.0.10, gateway: 10.0.0.1}",
			`enis[0].primary: "10.0.0.10": must be an address with its subnet's mask, like 10.0.0.10/24`},
		{"gateway", "snat: false\nenis:\n" + own + "\n- {id: b, device: eth1, primary: 10.0.0.20/24}",
			`enis[1].gateway: "": must be the address of the subnet's router, like 10.0.0.1`},
		{"gateway elsewhere", "snat: false\nenis:\n- {id: a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.1.1}",
			`enis[0]: eni a: gateway 10.0.1.1: is outside subnet 10.0.0.0/24`},
		{"primary6", "snat: false\nenis:\n- {id: a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1, primary6: 10.0.0.11/24, gateway6: 10.0.0.1}",
			`enis[0].primary6: "10.0.0.11/24": must be the IPv6 address beside an IPv4 primary`},
		{"gateway6", "snat: false\nenis:\n- {id: a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1, primary6: '2001:db8::1/64'}",
			`enis[0].gateway6: "": must be the address of the subnet's router, like 10.0.0.1`},
		{"mtu", "snat: false\nenis:\n- {id: a, device: eth0, mtu: 100, primary: 10.0.0.10/24, gateway: 10.0.0.1}",
			`enis[0]: eni a: mtu 100: must be 576 to 65535`},
		{"device", "snat: false\nenis:\n- {id: a, device: a/b, primary: 10.0.0.10/24, gateway: 10.0.0.1}",
			`enis[0]: eni a: device "a/b": must be a link name of 1 to 15 bytes`},
		{"an address", "snat: false\nenis:\n- {id: a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1, addresses: [10.0.0.11, eleven]}",
			`enis[0].addresses[1]: "eleven": must be an address or a prefix of at most 65536 addresses`},
		{"a prefix with host bits", "snat: false\nenis:\n- {id: a, device: eth0, primary: 10.0.0.10/24, gateway: 10.0.0.1, addresses: [10.0.0.11/30]}",
			`enis[0].addresses[0]: "10.0.0.11/30": must be an address or a prefix of at most 65536 addresses, without host bits: the prefix 10.0.0.8/30 or the address 10.0.0.11`},
		{"a prefix too large", "snat: false\nenis:\n- {id: a, device: eth0, primary: '2001:db8::2/64', gateway: 'fe80::1', addresses: ['2001:db8::/64']}",
			`enis[0].addresses[0]: "2001:db8::/64": must be an address or a prefix of at most 65536 addresses`},
		{"all at once", "routing: bgp\nmarkMask: green\nenis:\n- {id: a, device: eth0, primary: x, gateway: y, addresses: [z]}", lines(`
			routing: "bgp": must be map or rule
			markMask: "green": must be eight bits in a row without 0x4000 and 0x8000, like 0x000000ff
			enis[0].primary: "x": must be an address with its subnet's mask, like 10.0.0.10/24
			enis[0].addresses[0]: "z": must be an address or a prefix of at most 65536 addresses
			vpcCIDRs: "[]": must be the VPC's ranges when snat is true, so that pods keep their addresses inside it`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			if diff := cmp.Diff(strings.TrimSuffix(tt.want, "\n"), fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnInventoryIsOneDocumentAndNotEmpty(t *testing.T) {
	for name, tt := range map[string]struct {
		text []byte
		want string
	}{
		"empty":            {nil, `enis: "[]": must be a list of at least the node's primary ENI`},
		"comments alone":   {[]byte("# to be filled in\n"), `enis: "[]": must be a list of at least the node's primary ENI`},
		"two documents":    {append(small(""), "---\nenis: []\n"...), "a second document begins in it"},
		"an empty second":  {append(small(""), "---\n"...), ""},
		"a comment behind": {append(small(""), "# the end\n"...), ""},
	} {
		_, err := Parse(tt.text)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestFormatErrorsSpeakOfKeysAndNotOfGo(t *testing.T) {
	for text, want := range map[string]string{
		"enis:\n- id: a\n  address: [10.0.0.11]\n": `[3:3] address: must be removed or renamed: there is no such key; is addresses meant?`,
		"colour: green\n":                          `[1:1] colour: must be removed or renamed: there is no such key` + "\n",
		"enis:\n- id: a\n  mtu: big\n":             `[3:8] mtu: "big": must be a whole number`,
		"snat: perhaps\n":                          `[1:7] snat: "perhaps": must be true or false`,
		"enis: eth0\n":                             `[1:7] enis: "eth0": must be a list`,
		"enis: [eth0]\n":                           `"eth0": must be a section with keys`,
		"routing: [map]\n":                         `routing: a list: must be a text`,
	} {
		_, err := Parse([]byte(text))
		if got := fmt.Sprint(err); !strings.Contains(got, want) || strings.Contains(got, "Go ") || strings.Contains(got, "unmarshal") || strings.Contains(got, "raw") {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestWhatIsNotOfTheFormatIsNamedWithItsLine(t *testing.T) {
	for _, tt := range []struct{ name, text, line, word string }{
		{"an unknown key", "routing: map\ncolour: green\n", "2", "colour"},
		{"an unknown key of an ENI", "enis:\n- id: a\n  dev: eth0\n", "3", "dev"},
		{"a word for a number", "enis:\n- id: a\n  mtu: big\n", "3", "mtu"},
		{"a word for true", "routing: map\nsnat: perhaps\n", "2", "snat"},
		{"a word for a list", "routing: map\n\nenis: eth0\n", "3", "enis"},
		{"no YAML", "routing: map\nenis: [\n", "2", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			text := fmt.Sprint(err)
			if !strings.HasPrefix(text, "read inventory: ") || !strings.Contains(text, "["+tt.line+":") || !strings.Contains(text, tt.word) {
				t.Errorf("line %s and %q are not named: %s", tt.line, tt.word, text)
			}
		})
	}
	for _, text := range []string{"", "\n", "# nothing\n", "{}"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is an inventory", text)
		}
	}
}

// FuzzParseInventory: whatever is accepted can be made a node state, or Merge says why
// not; nothing panics on the way.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(string(small("routing: rule\nfirewall: iptables\nsnat: false\ncoolDown: 1s\nmarkMask: 0xff\nfamilies: [ipv6, ipv4]")))
	f.Add("snat: false\nenis: [{id: a, device: eth0, mtu: 1400, primary: '2001:db8::10/64', gateway: 'fe80::1', addresses: ['2001:db8::/124']}]")
	f.Add("enis: *a")
	f.Add("vpcCIDRs: !t^[10.0.0.0/16]\neni") // the library for YAML panics at it
	f.Fuzz(func(t *testing.T, text string) {
		inv, err := Parse([]byte(text))
		if err != nil {
			if len(inv.ENIs) > 0 || len(inv.Addresses) > 0 {
				t.Errorf("an inventory beside %v", err)
			}
			return
		}
		for i, e := range inv.ENIs {
			if e.Index != i {
				t.Errorf("ENI %d has index %d", i, e.Index)
			}
			if inv.ENIs[i].MTU == 0 {
				inv.ENIs[i].MTU = 1500
			}
		}
		if s, err := ipam.Merge(nil, inv.State, nil, 0); err == nil && len(s.Addresses) != len(inv.Addresses) {
			t.Errorf("%d addresses became %d", len(inv.Addresses), len(s.Addresses))
		}
	})
}

func TestRangesThatDontHoldTheENIsAreRefused(t *testing.T) {
	const text = "vpcCIDRs: [10.1.0.0/16]\nenis:\n- {id: eni-1, device: eth0, primary: 10.0.0.5/24, gateway: 10.0.0.1}\n"
	if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "vpcCIDRs [10.1.0.0/16] does not hold 10.0.0.5") {
		t.Errorf("ranges of another VPC: %v", err)
	}
}
