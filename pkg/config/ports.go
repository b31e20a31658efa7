package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
)

// readPorts reads portMappings: each port once, and none that leads to two ports of the pod.
func (r *extrasReader) readPorts(value json.RawMessage) {
	var list []fields
	if json.Unmarshal(value, &list) != nil {
		r.wrong("runtimeConfig.portMappings", value, "a list of {hostPort, containerPort, protocol, hostIP}")
		return
	}
	merger := portMerger{known: map[netconf.HostPort][]int{}}
	for i, entry := range list {
		key := fmt.Sprintf("runtimeConfig.portMappings[%d]", i)
		port, ok := r.readPort(key+".", entry)
		if !ok {
			continue
		}
		if other, contrary := merger.add(port); contrary {
			r.wrong(key+".hostPort", entry.get("hostPort"), fmt.Sprintf("another port than that of an entry before, which leads to containerPort %d", other.PodPort))
		}
	}
	r.extras.Ports = merger.merged()
}

// portMerger merges mappings of the same port of the node: a runtime says "all addresses" by no
// hostIP, 0.0.0.0 or ::, and may send the same port with several of them.
type portMerger struct {
	ports []netconf.HostPort
	known map[netconf.HostPort][]int // their positions in ports, by protocol and number alone
}

// add adds the port, unless it leads elsewhere than one before it: it returns that one, and true.
func (m *portMerger) add(port netconf.HostPort) (other netconf.HostPort, contrary bool) {
	number := netconf.HostPort{Transport: port.Transport, Port: port.Port}
	there := false
	for _, at := range m.known[number] {
		switch other := m.ports[at]; {
		case !port.Overlaps(other):
			continue
		case port.PodPort != other.PodPort:
			return other, true
		case port.Covers(other):
			m.ports[at] = port // it is open in more families
		}
		there = true
	}
	if !there {
		m.known[number] = append(m.known[number], len(m.ports))
		m.ports = append(m.ports, port)
	}
	return other, false
}

// merged returns each port once: one may have covered several.
func (m *portMerger) merged() (list []netconf.HostPort) {
	seen := map[netconf.HostPort]bool{}
	for _, port := range m.ports {
		if !seen[port] {
			seen[port] = true
			list = append(list, port)
		}
	}
	return list
}

// readPort reads one mapping and names all that is wrong with it.
func (r *extrasReader) readPort(prefix string, entry fields) (port netconf.HostPort, ok bool) {
	before := len(r.errs)
	number := func(key string, into *uint16) {
		if value := entry.get(key); value == nil || !decodeValue(value, into, func(n uint16) bool { return n > 0 }) {
			r.wrong(prefix+key, value, "a port from 1 to 65535")
		}
	}
	number("hostPort", &port.Port)
	number("containerPort", &port.PodPort)
	var name string
	value := entry.get("protocol")
	known := value != nil && decodeValue(value, &name, func(name string) bool {
		t, err := netconf.ParseTransport(strings.ToLower(name))
		port.Transport = t
		return err == nil
	})
	if !known {
		r.wrong(prefix+"protocol", value, "tcp, udp or sctp")
	}
	if value := entry.get("hostIP"); value != nil && !decodeValue(value, &name, func(text string) bool {
		a, err := netip.ParseAddr(text)
		port.Host = a.Unmap()
		return text == "" || err == nil && a.Zone() == ""
	}) {
		r.wrong(prefix+"hostIP", value, "an IPv4 or IPv6 address")
	}
	return port, len(r.errs) == before
}
