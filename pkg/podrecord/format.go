package podrecord

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Version is the format that this package writes. It reads every record whose head
// says "min" of at most this.
const Version = 1

// A record is lines that a person can read: a head, what is asked for, an end
// that tells a whole record from a cut one. The head says, as that of the node cache,
// which version wrote it and the oldest reader that can do without what it does not know:
// such a reader skips the lines of a later version that it has no name for.
const (
	magic = "enipool pod record"
	end   = "end"
)

func encodeRecord(record Record) []byte {
	// The pod's name is quoted: to a runtime it is free text, and a line break in it would
	// end the line. Network, container and interface are words by the rules of CNI.
	text := fmt.Appendf(nil, "%s %d min %d\nowner %s %s %s\npod %q\nfirewall %s\n", magic, Version, Version, record.Key.Network, record.Key.Container, record.Key.IfName, record.Pod, record.Firewall)
	for _, a := range record.Addrs {
		text = fmt.Appendf(text, "address %s\n", a)
	}
	if record.Turn > 0 {
		text = fmt.Appendf(text, "turn %d\n", record.Turn)
	}
	for _, p := range record.Ports {
		text = fmt.Appendf(text, "port %s %d to %d", p.Transport, p.Port, p.PodPort)
		if p.Host.IsValid() {
			text = fmt.Appendf(text, " on %s", p.Host)
		}
		text = append(text, '\n')
	}
	for _, l := range []struct {
		name string
		netconf.Limit
	}{{"ingress", record.Limits.Ingress}, {"egress", record.Limits.Egress}} {
		if l.Limit != (netconf.Limit{}) {
			text = fmt.Appendf(text, "%s %d %d\n", l.name, l.Rate, l.Burst)
		}
	}
	return append(text, end+"\n"...)
}

func decodeRecord(text []byte) (record Record, err error) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	version, err := decodeHead(lines[0])
	if err != nil {
		return record, err
	}
	if len(lines) < 3 || lines[len(lines)-1] != end {
		return record, fmt.Errorf("%w: it is no whole record", ErrDamaged)
	}
	for _, line := range lines[1 : len(lines)-1] {
		err := record.decodeLine(line)
		// The head of a later version says whether this reader can do without its new lines. In
		// a record of this version an unknown line is damage.
		if errors.Is(err, errUnknown) && version > Version {
			continue
		}
		if err != nil {
			return Record{}, fmt.Errorf("%w: line %q: %w", ErrDamaged, line, err)
		}
	}
	if record.Key == (eni.Key{}) {
		return Record{}, fmt.Errorf("%w: it has no owner", ErrDamaged)
	}
	return record, nil
}

// decodeHead returns the version of the record. Words behind "min" are a later version's.
// The first writers of version 1 wrote no "min": theirs is 1.
func decodeHead(line string) (version int, err error) {
	words := strings.Fields(strings.TrimPrefix(line, magic+" "))
	if line == magic+" 1" {
		words = append(words, "min", "1")
	}
	if !strings.HasPrefix(line, magic+" ") || len(words) < 3 || words[1] != "min" {
		return 0, fmt.Errorf("%w: it is no whole record", ErrDamaged)
	}
	version, err = strconv.Atoi(words[0])
	if err != nil {
		return 0, fmt.Errorf("%w: its version is %q", ErrDamaged, words[0])
	}
	if oldest, err := strconv.Atoi(words[2]); err != nil || oldest > Version {
		return 0, fmt.Errorf("%w: it is version %d and wants a reader of version %s or later, this is %d", ErrVersion, version, words[2], Version)
	}
	return version, nil
}

// errUnknown is a line of a kind that this version has no name for.
var errUnknown = errors.New("unknown")

func (r *Record) decodeLine(line string) (err error) {
	kind, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	switch {
	case kind == "pod":
		r.Pod, err = strconv.Unquote(rest)
	case kind == "owner" && len(words) == 3:
		r.Key = eni.Key{Network: words[0], Container: words[1], IfName: words[2]}
	case kind == "firewall" && len(words) == 1:
		r.Firewall, err = ipam.ParseFirewall(words[0])
	case kind == "address" && len(words) == 1:
		var a netip.Addr
		a, err = netip.ParseAddr(words[0])
		r.Addrs = append(r.Addrs, a)
	case kind == "turn" && len(words) == 1:
		r.Turn, err = strconv.Atoi(words[0])
	case kind == "port" && (len(words) == 4 || len(words) == 6):
		var p netconf.HostPort
		p, err = decodePort(words)
		r.Ports = append(r.Ports, p)
	case kind == "ingress" && len(words) == 2:
		r.Limits.Ingress, err = decodeLimit(words)
	case kind == "egress" && len(words) == 2:
		r.Limits.Egress, err = decodeLimit(words)
	// A line of a known kind is never skipped, whatever the version: a host port that is not
	// understood would be nobody's, and another pod could take it.
	case slices.Contains([]string{"owner", "firewall", "address", "turn", "port", "ingress", "egress"}, kind):
		err = fmt.Errorf("it has %d words", len(words)+1)
	default:
		err = errUnknown
	}
	return err
}

// decodePort reads "tcp 80 to 8080" or "tcp 80 to 8080 on 10.0.0.1".
func decodePort(words []string) (port netconf.HostPort, err error) {
	if port.Transport, err = netconf.ParseTransport(words[0]); err != nil {
		return port, err
	}
	for i, into := range map[int]*uint16{1: &port.Port, 3: &port.PodPort} {
		n, err := strconv.ParseUint(words[i], 10, 16)
		if err != nil || n == 0 {
			return port, fmt.Errorf("no port: %s", words[i])
		}
		*into = uint16(n)
	}
	if len(words) == 6 {
		port.Host, err = netip.ParseAddr(words[5])
	}
	return port, err
}

func decodeLimit(words []string) (l netconf.Limit, err error) {
	if l.Rate, err = strconv.ParseUint(words[0], 10, 64); err != nil {
		return l, err
	}
	l.Burst, err = strconv.ParseUint(words[1], 10, 64)
	return l, err
}
