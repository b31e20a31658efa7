package pool

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// fewPorts is how many host ports, or ranges of them, a cell has at most.
const fewPorts = 3

// notKnown is in the cells of a pod whose record can't be read. Why is told below them.
const notKnown = "not known"

// portRange is a host port, or several in a row that lead to one port of the pod or to as
// many in a row.
type portRange struct {
	node.ReportPort
	count int
	fixed bool // all lead to the same port of the pod
}

// portsCell returns the host ports in the form of other runtimes' tools: "8080->80/tcp".
func portsCell(address node.ReportAddress) string {
	if address.RecordError != "" {
		return notKnown
	}
	ranges := joinPorts(address.HostPorts)
	var words []string
	more := 0
	for i, r := range ranges {
		// "and 1 more" would take the place of that one.
		if i < fewPorts || len(ranges) == fewPorts+1 {
			words = append(words, r.String())
			continue
		}
		more += r.count
	}
	text := strings.Join(words, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return cli.OrDash(text)
}

// joinPorts joins ports in a row into ranges, and returns them in the order of their numbers.
func joinPorts(ports []node.ReportPort) []portRange {
	sorted := slices.Clone(ports)
	slices.SortFunc(sorted, func(a, b node.ReportPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), a.HostIP.Compare(b.HostIP), cmp.Compare(a.HostPort, b.HostPort))
	})
	var ranges []portRange
	for _, p := range sorted {
		if n := len(ranges); n == 0 || !ranges[n-1].extend(p) {
			ranges = append(ranges, portRange{ReportPort: p, count: 1})
		}
	}
	slices.SortStableFunc(ranges, func(a, b portRange) int { return cmp.Compare(a.HostPort, b.HostPort) })
	return ranges
}

// extend adds the port to the range if it is the next one, and tells whether it did.
func (r *portRange) extend(p node.ReportPort) bool {
	if p.Protocol != r.Protocol || p.HostIP != r.HostIP || int(p.HostPort) != int(r.HostPort)+r.count {
		return false
	}
	fixed, follows := p.ContainerPort == r.ContainerPort, int(p.ContainerPort) == int(r.ContainerPort)+r.count
	if !fixed && !follows || r.count > 1 && fixed != r.fixed {
		return false
	}
	r.count, r.fixed = r.count+1, fixed
	return true
}

// String returns "8080->80/tcp", "8000-8009->8000-8009/tcp" or "10.0.0.1:53->53/udp".
func (r portRange) String() string {
	last := r.count - 1
	host, pod := numbers(r.HostPort, last), numbers(r.ContainerPort, last)
	if r.fixed {
		pod = numbers(r.ContainerPort, 0)
	}
	if r.HostIP.IsValid() {
		host = net.JoinHostPort(r.HostIP.String(), host)
	}
	return fmt.Sprintf("%s->%s/%s", host, pod, r.Protocol)
}

func numbers(first uint16, more int) string {
	if more == 0 {
		return strconv.Itoa(int(first))
	}
	return fmt.Sprintf("%d-%d", first, int(first)+more)
}

// limitsCell returns the rates of the limits: in is what the pod receives.
func limitsCell(address node.ReportAddress) string {
	limits := address.Bandwidth
	switch {
	case address.RecordError != "":
		return notKnown
	case limits == nil:
		return "-"
	}
	var words []string
	if limits.IngressRate > 0 {
		words = append(words, "in "+rateText(limits.IngressRate))
	}
	if limits.EgressRate > 0 {
		words = append(words, "out "+rateText(limits.EgressRate))
	}
	return cli.OrDash(strings.Join(words, ", "))
}

// rateText writes bits per second as tc(8) does.
func rateText(bits uint64) string {
	for _, unit := range []struct {
		name string
		bits uint64
	}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}} {
		if bits%unit.bits == 0 && bits > 0 {
			return fmt.Sprintf("%d%s", bits/unit.bits, unit.name)
		}
	}
	return fmt.Sprintf("%dbit", bits)
}

// portFilter picks the pods that have a host port. The zero one picks all.
type portFilter struct {
	port     uint16
	protocol string // "" for any
}

// parsePortFilter reads "8080" or "8080/tcp"; "" is no filter.
func parsePortFilter(text string) (f portFilter, err error) {
	if text == "" {
		return f, nil
	}
	number, protocol, named := strings.Cut(text, "/")
	n, err := strconv.ParseUint(number, 10, 16)
	if err == nil && named {
		_, err = netconf.ParseTransport(protocol)
	}
	if err != nil || n == 0 {
		return f, fmt.Errorf("--port %s: must be a port like 8080, or 8080/tcp with tcp, udp or sctp", text)
	}
	return portFilter{uint16(n), protocol}, nil
}

// String returns the port as it was asked for.
func (f portFilter) String() string {
	if f.protocol == "" {
		return strconv.Itoa(int(f.port))
	}
	return fmt.Sprintf("%d/%s", f.port, f.protocol)
}

// pick leaves in the report the addresses that the port leads to, with only that of their ports.
// Where there are none it returns a noneError, or another error if some records can't be read.
func (f portFilter) pick(report *node.Report) error {
	var picked []node.ReportAddress
	for _, address := range report.Addresses {
		address.HostPorts = slices.DeleteFunc(slices.Clone(address.HostPorts), func(p node.ReportPort) bool {
			return p.HostPort != f.port || f.protocol != "" && p.Protocol != f.protocol
		})
		if len(address.HostPorts) > 0 {
			picked = append(picked, address)
		}
	}
	if report.Addresses = picked; len(picked) > 0 {
		return nil
	}
	none := noneError(fmt.Sprintf("no pod of enipool has host port %s; the node's own programs: ss -lntup 'sport = :%d'", f, f.port))
	if len(report.UnreadRecords) == 0 {
		return none
	}
	errs := []error{errors.New(none.Error())} // not a noneError: a pod whose record is not known may have it
	for _, unread := range report.UnreadRecords {
		errs = append(errs, fmt.Errorf("not known are the host ports of a pod: %s", unread))
	}
	return errors.Join(errs...)
}
