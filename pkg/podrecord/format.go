package podrecord

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// A record is lines that a person can read: a head, what is asked for, an end
// that tells a whole record from a cut one.
const (
	head = "enipool pod record 1"
	end  = "end"
)

func encode(r Record) []byte {
	b := fmt.Appendf(nil, "%s\nowner %s %s %s\npod %q\nfirewall %s\n", head, r.Key.Network, r.Key.Container, r.Key.IfName, r.Pod, r.Firewall)
	for _, a := range r.Addrs {
		b = fmt.Appendf(b, "address %s\n", a)
	}
	if r.Turn > 0 {
		b = fmt.Appendf(b, "turn %d\n", r.Turn)
	}
	for _, p := range r.Ports {
		b = fmt.Appendf(b, "port %s %d to %d", p.Transport, p.Port, p.PodPort)
		if p.Host.IsValid() {
			b = fmt.Appendf(b, " on %s", p.Host)
		}
		b = append(b, '\n')
	}
	for _, l := range []struct {
		name string
		netconf.Limit
	}{{"ingress", r.Limits.Ingress}, {"egress", r.Limits.Egress}} {
		if l.Limit != (netconf.Limit{}) {
			b = fmt.Appendf(b, "%s %d %d\n", l.name, l.Rate, l.Burst)
		}
	}
	return append(b, end+"\n"...)
}

func decode(text []byte) (r Record, err error) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 3 || lines[0] != head || lines[len(lines)-1] != end {
		return r, fmt.Errorf("%w: it is no whole record", ErrDamaged)
	}
	for _, line := range lines[1 : len(lines)-1] {
		if err := r.decodeLine(line); err != nil {
			return Record{}, fmt.Errorf("%w: line %q: %w", ErrDamaged, line, err)
		}
	}
	if r.Key == (eni.Key{}) {
		return Record{}, fmt.Errorf("%w: it has no owner", ErrDamaged)
	}
	return r, nil
}

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
	default:
		err = fmt.Errorf("unknown")
	}
	return err
}

// decodePort reads "tcp 80 to 8080" or "tcp 80 to 8080 on 10.0.0.1".
func decodePort(words []string) (p netconf.HostPort, err error) {
	if p.Transport, err = netconf.ParseTransport(words[0]); err != nil {
		return p, err
	}
	for i, into := range map[int]*uint16{1: &p.Port, 3: &p.PodPort} {
		n, err := strconv.ParseUint(words[i], 10, 16)
		if err != nil || n == 0 {
			return p, fmt.Errorf("no port: %s", words[i])
		}
		*into = uint16(n)
	}
	if len(words) == 6 {
		p.Host, err = netip.ParseAddr(words[5])
	}
	return p, err
}

func decodeLimit(words []string) (l netconf.Limit, err error) {
	if l.Rate, err = strconv.ParseUint(words[0], 10, 64); err != nil {
		return l, err
	}
	l.Burst, err = strconv.ParseUint(words[1], 10, 64)
	return l, err
}
