package nodecache

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

func encodeSettings(s ipam.Settings) []string {
	families := make([]string, len(s.Families))
	for i, f := range s.Families {
		families[i] = f.String()
	}
	lines := []string{
		"set routing " + s.Routing.String(),
		"set firewall " + s.Firewall.String(),
		"set snat " + strconv.FormatBool(s.SNAT),
		fmt.Sprintf("set markMask %#08x", s.MarkMask),
		"set coolDown " + s.CoolDown.String(),
		"set families " + strings.Join(families, ","),
	}
	for _, cidr := range s.VPC {
		lines = append(lines, "set vpc "+cidr.String())
	}
	return lines
}

// decodeSetting reads one setting. Keys that it does not know are a newer
// writer's, who vouched by "min" that they may be ignored.
func decodeSetting(text string, s *ipam.Settings) error {
	f := strings.Fields(text)
	if len(f) != 3 || f[0] != "set" {
		return damaged("is not a setting: %q", strings.TrimSpace(text))
	}
	var err error
	switch value := f[2]; f[1] {
	case "routing":
		s.Routing, err = ipam.ParseRouting(value)
	case "firewall":
		s.Firewall, err = ipam.ParseFirewall(value)
	case "snat":
		s.SNAT, err = strconv.ParseBool(value)
	case "markMask":
		var mask uint64
		mask, err = strconv.ParseUint(value, 0, 32)
		s.MarkMask = uint32(mask)
	case "coolDown":
		s.CoolDown, err = time.ParseDuration(value)
	case "families":
		s.Families, err = decodeFamilies(value)
	case "vpc":
		var cidr netip.Prefix
		cidr, err = netip.ParsePrefix(value)
		s.VPC = append(s.VPC, cidr)
	}
	if err != nil {
		return damaged("setting %s: %v", f[1], err)
	}
	return nil
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

func encodeENI(i eni.Interface) string {
	return fmt.Sprintf("eni %d %s %s %d %s %s %s %s", i.Index, escape(i.ID), escape(i.Device), i.MTU,
		orDash(i.V4.Primary), orDash(i.V4.Gateway), orDash(i.V6.Primary), orDash(i.V6.Gateway))
}

func decodeENI(text string) (eni.Interface, error) {
	f := strings.Fields(text)
	if len(f) < 9 || f[0] != "eni" {
		return eni.Interface{}, damaged("is not an ENI: %q", strings.TrimSpace(text))
	}
	index, err1 := strconv.Atoi(f[1])
	mtu, err2 := strconv.Atoi(f[4])
	v4, err3 := decodeNet(f[5], f[6])
	v6, err4 := decodeNet(f[7], f[8])
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return eni.Interface{}, damaged("eni %s: %v", f[2], err)
		}
	}
	i := eni.Interface{ID: unescape(f[2]), Index: index, Device: unescape(f[3]), MTU: mtu, V4: v4, V6: v6}
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

// Names that only inform are cut; those that identify never are.
const (
	maxNamespace = 63
	maxUID       = 64
)

func encodeAddress(a *eni.Address) (string, error) {
	ms := (a.Since + time.Millisecond - 1).Milliseconds() // up: an address must not cool too short
	text := fmt.Sprintf("%-22s %3d %-9s %10d.%03d", a.Addr, a.ENI, a.State, ms/1000, ms%1000)
	if a.State != eni.Used {
		return text, nil
	}
	o := a.Owner
	text += fmt.Sprintf(" %s %s %s %s %s %d %.*s %.*s", o.Kind, escape(o.Network), escape(o.Container), escape(o.IfName),
		escape(o.Netns), o.NetnsInode, maxNamespace, escape(o.Namespace), maxUID, escape(o.UID))
	if len(text)+2 > textSize {
		return "", fmt.Errorf("%w: network, container id and namespace path have %d bytes together", ErrOwnerTooLong, len(o.Network)+len(o.Container)+len(o.Netns))
	}
	pod := escape(o.Pod)
	return text + " " + pod[:min(len(pod), textSize-len(text)-1)], nil
}

// decodeAddress reads an address line into a, which must be zero. It allocates
// nothing but owners.
func decodeAddress(text []byte, a *eni.Address) (err error) {
	var f []byte
	f, text = shortField(text)
	if a.Addr, err = decodeAddr(f); err != nil {
		return err
	}
	f, text = shortField(text)
	if a.ENI, err = strconv.Atoi(string(f)); err != nil {
		return err
	}
	f, text = shortField(text)
	if a.State, err = decodeState(f); err != nil {
		return err
	}
	f, text = shortField(text)
	if a.Since, err = decodeSince(f); err != nil || a.State != eni.Used {
		return err
	}
	a.Owner, err = decodeOwner(text)
	return err
}

// decodeAddr reads a dotted quad itself, because netip.ParseAddr keeps its
// argument and would need a copy of each.
func decodeAddr(f []byte) (netip.Addr, error) {
	var quad [4]byte
	part, digits, value := 0, 0, 0
	for i := 0; i <= len(f); i++ {
		switch {
		case i < len(f) && f[i] >= '0' && f[i] <= '9' && digits < 3 && (digits == 0 || value > 0):
			value, digits = value*10+int(f[i]-'0'), digits+1
		case (i == len(f) && part == 3 || i < len(f) && f[i] == '.' && part < 3) && digits > 0 && value < 256:
			quad[part] = byte(value)
			part, digits, value = part+1, 0, 0
		default:
			return netip.ParseAddr(string(f))
		}
	}
	return netip.AddrFrom4(quad), nil
}

func decodeState(f []byte) (eni.State, error) {
	for s := eni.Free; s <= eni.Releasing; s++ {
		if string(f) == s.String() {
			return s, nil
		}
	}
	return eni.ParseState(string(f))
}

func decodeSince(f []byte) (time.Duration, error) {
	dot := len(f) - len(".000")
	if dot < 1 || dot > len("4294967296") || f[dot] != '.' {
		return 0, fmt.Errorf("time since boot %q can't be read", f)
	}
	var ms time.Duration
	for i, c := range f {
		if i == dot {
			continue
		}
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("time since boot %q can't be read", f)
		}
		ms = ms*10 + time.Duration(c-'0')
	}
	return ms * time.Millisecond, nil
}

// ownerPrefix is how the key stands in a line, after the kind.
func ownerPrefix(k eni.Key) []byte {
	return []byte(" " + escape(k.Network) + " " + escape(k.Container) + " " + escape(k.IfName) + " ")
}

// usedByAnother tells whether the line is one of a used address whose owner is
// not the one with the prefix. It does not look at the checksum: a damaged line
// that still says "used" is as little to be given or taken as a sound one.
func usedByAnother(text, prefix []byte) bool {
	var f []byte
	for range 3 { // address, ENI, state
		f, text = shortField(text)
	}
	if string(f) != "used" {
		return false
	}
	for range 2 { // since, kind
		_, text = shortField(text)
	}
	return !bytes.HasPrefix(text, prefix)
}

func decodeOwner(text []byte) (*eni.Owner, error) {
	kind, text := field(text)
	o := &eni.Owner{}
	var err error
	if o.Kind, err = eni.ParseKind(string(kind)); err != nil {
		return nil, err
	}
	var f []byte
	for _, p := range [...]*string{&o.Network, &o.Container, &o.IfName, &o.Netns} {
		f, text = field(text)
		*p = unescape(string(f))
	}
	f, text = field(text)
	if o.NetnsInode, err = strconv.ParseUint(string(f), 10, 64); err != nil {
		return nil, err
	}
	for _, p := range [...]*string{&o.Namespace, &o.UID, &o.Pod} {
		f, text = field(text)
		*p = unescape(string(f))
	}
	return o, nil
}

// shortField is field for words so short that looking at each byte is faster than
// a call that looks at many.
func shortField(text []byte) (word, rest []byte) {
	start := 0
	for start < len(text) && text[start] == ' ' {
		start++
	}
	end := start
	for end < len(text) && text[end] != ' ' {
		end++
	}
	return text[start:end], text[end:]
}

// field cuts the first blank-separated word off text.
func field(text []byte) (word, rest []byte) {
	start := 0
	for start < len(text) && text[start] == ' ' {
		start++
	}
	text = text[start:]
	if end := bytes.IndexByte(text, ' '); end >= 0 {
		return text[:end], text[end:]
	}
	return text, nil
}

// escape makes a name one word of printable ASCII, so that whatever a runtime
// passes (CNI_ARGS are free text) can't break a line. An empty name is "-".
func escape(name string) string {
	if name == "" {
		return "-"
	}
	plain := name != "-"
	for i := 0; i < len(name) && plain; i++ {
		plain = name[i] > ' ' && name[i] < 0x7f && name[i] != '%'
	}
	if plain {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c > ' ' && c < 0x7f && c != '%' && name != "-" {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescape is the inverse of escape. A cut escape at the end is dropped.
func unescape(word string) string {
	if word == "-" {
		return ""
	}
	if strings.IndexByte(word, '%') < 0 {
		return word
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '%' {
			b.WriteByte(word[i])
			continue
		}
		if i+2 < len(word) {
			if c, err := strconv.ParseUint(word[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
			}
		}
		i += 2
	}
	return b.String()
}
