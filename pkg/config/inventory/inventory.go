// Package inventory reads the file that says what a node should have. It is apart
// from its parent so that the exec plugin does not link a YAML parser.
package inventory

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Inventory is what a node should have: settings, ENIs in ENI order with the primary ENI
// first, and their addresses, all free.
type Inventory struct {
	ipam.State
	// AnyFirewall: the inventory leaves the choice of the packet filter to the node.
	AnyFirewall bool
}

type rawInventory struct {
	Routing  string   `yaml:"routing"`
	Firewall string   `yaml:"firewall"`
	VPCCIDRs []string `yaml:"vpcCIDRs"`
	SNAT     *bool    `yaml:"snat"`
	MarkMask typed    `yaml:"markMask"`
	CoolDown string   `yaml:"coolDown"`
	Families []string `yaml:"families"`
	ENIs     []rawENI `yaml:"enis"`
}

// typed is a text or a number as it stands in the file: the decoder makes decimals of numbers.
type typed string

// UnmarshalYAML is how the decoder asks for it.
func (t *typed) UnmarshalYAML(n ast.Node) error {
	if n.Type() == ast.IntegerType {
		*t = typed(n.GetToken().Value)
		return nil
	}
	return yaml.NodeToValue(n, (*string)(t))
}

type rawENI struct {
	ID        string   `yaml:"id"`
	Device    string   `yaml:"device"`
	Primary   string   `yaml:"primary"`
	Gateway   string   `yaml:"gateway"`
	Primary6  string   `yaml:"primary6"`
	Gateway6  string   `yaml:"gateway6"`
	MTU       int      `yaml:"mtu"`
	Addresses []string `yaml:"addresses"`
}

// DefaultCoolDown is how long an address that a pod had cools down where the file says nothing.
const DefaultCoolDown = 30 * time.Second

// maxExpand limits what one prefix in a list of addresses may stand for.
const maxExpand = 1 << 16

// Parse reads an inventory file, YAML of one document; conf/inventory.yaml explains every
// key. An ENI without an mtu has MTU 0: only the node knows it. All errors of keys are
// reported, each a *config.KeyError, or one error of the format.
func Parse(text []byte) (Inventory, error) {
	var raw rawInventory
	file := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err := decodeFile(file, &raw); err != nil && err != io.EOF { // which an empty file is
		return Inventory{}, formatError(err)
	}
	if decodeFile(file, new(any)) != io.EOF {
		return Inventory{}, errors.New("read inventory: a second document begins in it: everything must stand in the first")
	}
	p := &parser{}
	inv := Inventory{AnyFirewall: raw.Firewall == "" || raw.Firewall == "auto"}
	inv.Settings = p.parseSettings(raw)
	for i, e := range raw.ENIs {
		nic, addrs := p.parseENI(fmt.Sprintf("enis[%d]", i), e)
		nic.Index = i
		inv.ENIs = append(inv.ENIs, nic)
		for _, a := range addrs {
			inv.Addresses = append(inv.Addresses, eni.Address{Addr: a, ENI: i})
		}
	}
	if len(raw.ENIs) == 0 {
		p.addError("enis", "[]", "a list of at least the node's primary ENI")
	}
	inv.Settings.Families = p.parseFamilies(raw.Families, inv.State)
	if inv.Settings.SNAT && len(inv.Settings.VPC) == 0 {
		p.addError("vpcCIDRs", "[]", "the VPC's ranges when snat is true, so that pods keep their addresses inside it")
	}
	if err := errors.Join(p.errs...); err != nil {
		return Inventory{}, err
	}
	if wrong := ipam.OutsideVPC(inv.Settings, inv.ENIs); wrong != "" {
		return Inventory{}, errors.New(wrong)
	}
	return inv, nil
}

// decodeFile decodes a document. The library panics at some that are not YAML, such as a tag before a list: that is an error of the file.
func decodeFile(file *yaml.Decoder, into any) (err error) {
	defer func() {
		if stop := recover(); stop != nil {
			err = fmt.Errorf("it can't be read as YAML, perhaps for a tag like !name before a list: %v", stop)
		}
	}()
	return file.Decode(into)
}

// parser collects errors.
type parser struct{ errs []error }

func (p *parser) addError(key, value, want string) {
	p.errs = append(p.errs, &config.KeyError{Key: key, Value: strconv.Quote(value), Want: want})
}

func (p *parser) parseSettings(raw rawInventory) ipam.Settings {
	settings := ipam.Settings{SNAT: raw.SNAT == nil || *raw.SNAT, MarkMask: ipam.DefaultMarkMask, CoolDown: DefaultCoolDown}
	var err error
	if settings.Routing, err = ipam.ParseRouting(cmp.Or(raw.Routing, "map")); err != nil {
		p.addError("routing", raw.Routing, "map or rule")
	}
	if raw.Firewall != "" && raw.Firewall != "auto" {
		if settings.Firewall, err = ipam.ParseFirewall(raw.Firewall); err != nil {
			p.addError("firewall", raw.Firewall, "auto, nftables or iptables")
		}
	}
	if raw.CoolDown != "" {
		if settings.CoolDown, err = time.ParseDuration(raw.CoolDown); err != nil || settings.CoolDown < 0 || settings.CoolDown > time.Hour {
			p.addError("coolDown", raw.CoolDown, `a duration like "30s", at most "1h"`)
		}
	}
	if raw.MarkMask != "" {
		mask, err := strconv.ParseUint(string(raw.MarkMask), 0, 32)
		if settings.MarkMask = uint32(mask); err != nil || ipam.ValidMarkMask(settings.MarkMask) != nil {
			p.addError("markMask", string(raw.MarkMask), "eight bits in a row without 0x4000 and 0x8000, like 0x000000ff")
		}
	}
	for i, text := range raw.VPCCIDRs {
		cidr, err := netip.ParsePrefix(text)
		if err != nil || cidr != cidr.Masked() {
			p.addError(fmt.Sprintf("vpcCIDRs[%d]", i), text, "a range like 10.0.0.0/16, without host bits")
		}
		settings.VPC = append(settings.VPC, cidr)
	}
	return settings
}

func (p *parser) parseENI(key string, raw rawENI) (eni.Interface, []netip.Addr) {
	nic := eni.Interface{ID: raw.ID, Device: raw.Device, MTU: raw.MTU}
	first := p.parseNet(key, "", raw.Primary, raw.Gateway)
	if first.IsValid() && first.Primary.Addr().Is6() {
		nic.V6 = first
	} else {
		nic.V4 = first
	}
	if raw.Primary6 != "" {
		if nic.V6.IsValid() || strings.Contains(raw.Primary6, ".") {
			p.addError(key+".primary6", raw.Primary6, "the IPv6 address beside an IPv4 primary")
		}
		nic.V6 = p.parseNet(key, "6", raw.Primary6, raw.Gateway6)
	}
	whole := nic
	whole.MTU = cmp.Or(nic.MTU, 1500) // the rest can be judged without it
	if err := whole.Validate(); err != nil && first.IsValid() {
		p.errs = append(p.errs, fmt.Errorf("%s: %w", key, err))
	}
	var addrs []netip.Addr
	for i, text := range raw.Addresses {
		list, ok := expandPrefix(text)
		if !ok {
			p.addError(fmt.Sprintf("%s.addresses[%d]", key, i), text, wantAddress(text))
		}
		addrs = append(addrs, list...)
	}
	return nic, addrs
}

func (p *parser) parseNet(key, six, primary, gateway string) eni.Net {
	var n eni.Net
	var err error
	if n.Primary, err = netip.ParsePrefix(primary); err != nil {
		p.addError(key+".primary"+six, primary, "an address with its subnet's mask, like 10.0.0.10/24")
		return eni.Net{}
	}
	if n.Gateway, err = netip.ParseAddr(gateway); err != nil {
		p.addError(key+".gateway"+six, gateway, "the address of the subnet's router, like 10.0.0.1")
		return eni.Net{}
	}
	return n
}

// expandPrefix returns the address, or all addresses of the prefix.
func expandPrefix(text string) ([]netip.Addr, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		return []netip.Addr{a}, true
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || p.Addr().BitLen()-p.Bits() > 16 {
		return nil, false
	}
	var list []netip.Addr
	for a := p.Addr(); p.Contains(a); a = a.Next() {
		list = append(list, a)
	}
	return list, true
}

// wantAddress says what an entry of addresses must be, and names what it may be meant to be.
func wantAddress(text string) string {
	want := fmt.Sprintf("an address or a prefix of at most %d addresses", maxExpand)
	if p, err := netip.ParsePrefix(text); err == nil && p != p.Masked() {
		want += fmt.Sprintf(", without host bits: the prefix %s or the address %s", p.Masked(), p.Addr())
	}
	return want
}

// parseFamilies returns the families that were asked for, else those of the addresses, else
// those of the primary addresses.
func (p *parser) parseFamilies(asked []string, state ipam.State) []eni.Family {
	has := map[eni.Family]bool{}
	for i, name := range asked {
		switch name {
		case "ipv4":
			has[eni.IPv4] = true
		case "ipv6":
			has[eni.IPv6] = true
		default:
			p.addError(fmt.Sprintf("families[%d]", i), name, "ipv4 or ipv6")
		}
	}
	for _, a := range state.Addresses {
		if len(asked) == 0 {
			has[a.Family()] = true
		}
	}
	for _, nic := range state.ENIs {
		if len(asked) == 0 && len(state.Addresses) == 0 {
			for _, n := range nic.Nets() {
				has[eni.FamilyOf(n.Primary.Addr())] = true
			}
		}
	}
	var families []eni.Family
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if has[f] {
			families = append(families, f)
		}
	}
	return families
}
