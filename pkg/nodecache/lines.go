package nodecache

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

func encodeSettings(settings ipam.Settings) []string {
	families := make([]string, len(settings.Families))
	for i, f := range settings.Families {
		families[i] = f.String()
	}
	lines := []string{
		"set routing " + settings.Routing.String(),
		"set firewall " + settings.Firewall.String(),
		"set snat " + strconv.FormatBool(settings.SNAT),
		fmt.Sprintf("set markMask %#08x", settings.MarkMask),
		"set coolDown " + settings.CoolDown.String(),
		"set families " + strings.Join(families, ","),
	}
	if !settings.PodsInMain {
		// Without this line a plugin writes pods' routes into the main table, where the agent that
		// wrote such a node state looks for them.
		lines = append(lines, fmt.Sprintf("set podsTable %d", netconf.PodsTable))
	}
	if settings.V4Block > 0 {
		lines = append(lines, fmt.Sprintf("set ipv4Block %d", settings.V4Block))
	}
	if settings.V6Block > 0 {
		lines = append(lines, fmt.Sprintf("set ipv6Block %d", settings.V6Block))
	}
	for _, namespace := range settings.Gated {
		lines = append(lines, "set gated "+escape(namespace))
	}
	for _, cidr := range settings.VPC {
		lines = append(lines, "set vpc "+cidr.String())
	}
	return lines
}

// decodeSetting reads one setting. Keys that it does not know are a newer
// writer's, who vouched by "min" that they may be ignored.
func decodeSetting(text string, settings *ipam.Settings) error {
	fields := strings.Fields(text)
	if len(fields) != 3 || fields[0] != "set" {
		return damaged("is not a setting: %q", strings.TrimSpace(text))
	}
	var err error
	switch value := fields[2]; fields[1] {
	case "routing":
		settings.Routing, err = ipam.ParseRouting(value)
	case "firewall":
		settings.Firewall, err = ipam.ParseFirewall(value)
	case "snat":
		settings.SNAT, err = strconv.ParseBool(value)
	case "markMask":
		var mask uint64
		mask, err = strconv.ParseUint(value, 0, 32)
		settings.MarkMask = uint32(mask)
	case "coolDown":
		settings.CoolDown, err = time.ParseDuration(value)
	case "families":
		settings.Families, err = decodeFamilies(value)
	case "ipv4Block":
		settings.V4Block, err = decodeBits(value, eni.IPv4)
	case "ipv6Block":
		settings.V6Block, err = decodeBits(value, eni.IPv6)
	case "podsTable":
		if settings.PodsInMain = value != strconv.Itoa(netconf.PodsTable); settings.PodsInMain {
			err = fmt.Errorf("must be %d: %s", netconf.PodsTable, value)
		}
	case "gated":
		settings.Gated = append(settings.Gated, unescape(value))
	case "vpc":
		var cidr netip.Prefix
		cidr, err = netip.ParsePrefix(value)
		settings.VPC = append(settings.VPC, cidr)
	}
	if err != nil {
		return damaged("setting %s: %v", fields[1], err)
	}
	return nil
}

// decodeBits reads the length of a prefix.
func decodeBits(text string, f eni.Family) (int, error) {
	bits, err := strconv.Atoi(text)
	if err == nil && (bits < 0 || bits > f.Bits()) {
		err = fmt.Errorf("must be at most %d: %d", f.Bits(), bits)
	}
	return bits, err
}

func decodeFamilies(text string) ([]eni.Family, error) {
	var families []eni.Family
	for name := range strings.SplitSeq(text, ",") {
		switch name {
		case "ipv4":
			families = append(families, eni.IPv4)
		case "ipv6":
			families = append(families, eni.IPv6)
		default:
			return nil, fmt.Errorf("unknown family %q", name)
		}
	}
	return families, nil
}

// encodeENI returns the ENI's line, and settings for those of its ranges that have no room there.
func encodeENI(i eni.Interface) (string, []string) {
	line := fmt.Sprintf("eni %d %s %s %d %s %s %s %s", i.Index, escape(i.ID), escape(i.Device), i.MTU,
		orDash(i.V4.Primary), orDash(i.V4.Gateway), orDash(i.V6.Primary), orDash(i.V6.Gateway))
	var more []string
	for _, p := range i.Pods { // earlier releases ignore them
		if more == nil && len(line)+1+len(p.String()) <= textSize {
			line += " " + p.String()
			continue
		}
		if len(more) == 0 || len(more[len(more)-1])+1+len(p.String()) > textSize {
			more = append(more, fmt.Sprintf("set %s %d=%s", podRanges, i.Index, p))
			continue
		}
		more[len(more)-1] += "," + p.String()
	}
	return line, more
}

// podRanges is the setting with ranges for pods that have no room in the line of their ENI. Its
// value is the ENI's index, "=" and the ranges, with commas between them.
const podRanges = "podRanges"

// decodePodRanges reads one such setting into ranges, by index; it returns false for any other
// setting.
func decodePodRanges(text string, ranges map[int][]netip.Prefix) (bool, error) {
	value, is := strings.CutPrefix(text, "set "+podRanges+" ")
	if !is {
		return false, nil
	}
	at, list, _ := strings.Cut(value, "=")
	index, err := strconv.Atoi(at)
	if err != nil {
		return true, damaged("setting %s: %v", podRanges, err)
	}
	for one := range strings.SplitSeq(list, ",") {
		p, err := netip.ParsePrefix(one)
		if err != nil {
			return true, damaged("setting %s: %v", podRanges, err)
		}
		ranges[index] = append(ranges[index], p)
	}
	return true, nil
}

// decodeENI reads an ENI. more are ranges for pods, by index, that have no room in its line.
func decodeENI(text string, more map[int][]netip.Prefix) (eni.Interface, error) {
	fields := strings.Fields(text)
	if len(fields) < 9 || fields[0] != "eni" {
		return eni.Interface{}, damaged("is not an ENI: %q", strings.TrimSpace(text))
	}
	index, err1 := strconv.Atoi(fields[1])
	mtu, err2 := strconv.Atoi(fields[4])
	v4, err3 := decodeNet(fields[5], fields[6])
	v6, err4 := decodeNet(fields[7], fields[8])
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return eni.Interface{}, damaged("eni %s: %v", fields[2], err)
		}
	}
	i := eni.Interface{ID: unescape(fields[2]), Index: index, Device: unescape(fields[3]), MTU: mtu, V4: v4, V6: v6}
	for _, text := range fields[9:] {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return eni.Interface{}, damaged("eni %s: %v", fields[2], err)
		}
		i.Pods = append(i.Pods, p)
	}
	i.Pods = append(i.Pods, more[index]...)
	if err := i.Validate(); err != nil {
		return eni.Interface{}, damaged("%v", err)
	}
	return i, nil
}

func decodeNet(primary, gateway string) (n eni.Net, err error) {
	if primary == "-" {
		return eni.Net{}, nil
	}
	if n.Primary, err = netip.ParsePrefix(primary); err != nil {
		return eni.Net{}, err
	}
	n.Gateway, err = netip.ParseAddr(gateway)
	return n, err
}

func orDash(v interface {
	IsValid() bool
	String() string
}) string {
	if !v.IsValid() {
		return "-"
	}
	return v.String()
}
