package netconf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// What leads ports of the node to pods is read back from the kernel where the record of
// what a pod asked for is lost.

// NftPortMaps returns the names of the maps that lead ports of the node to pods.
func NftPortMaps() []string {
	return []string{nftHostPorts + "4", nftAddrPorts + "4", nftHostPorts + "6", nftAddrPorts + "6"}
}

// ParseNftPort returns the port that an element of one of those maps stands for, and the
// address of the pod that it leads to.
func ParseNftPort(set string, key, value []byte) (PodPorts, bool) {
	length := 4
	if strings.HasSuffix(set, "6") {
		length = 16
	}
	host := netip.IPv4Unspecified()
	if length == 16 {
		host = netip.IPv6Unspecified()
	}
	if strings.HasPrefix(set, nftAddrPorts) && len(key) > length {
		host, _ = netip.AddrFromSlice(key[:length])
		key = key[length:]
	}
	if len(key) != 8 || len(value) != length+4 {
		return PodPorts{}, false
	}
	pod, _ := netip.AddrFromSlice(value[:length])
	return PodPorts{pod, []HostPort{{Transport: Transport(key[0]), Host: host,
		Port: binary.BigEndian.Uint16(key[4:]), PodPort: binary.BigEndian.Uint16(value[length:])}}}, true
}

// IptPortChain is the chain of iptables whose rules lead ports of the node to pods.
const IptPortChain = iptPorts

// ParseIptPort is ParseNftPort for a rule of that chain.
func ParseIptPort(family eni.Family, rule string) (PodPorts, bool) {
	port := HostPort{Host: netip.IPv4Unspecified()}
	if family == eni.IPv6 {
		port.Host = netip.IPv6Unspecified()
	}
	var pod netip.AddrPort
	words := strings.Fields(rule)
	for i := 0; i+1 < len(words); i++ {
		var err error
		switch value := words[i+1]; words[i] {
		case "-d":
			var p netip.Prefix
			p, err = netip.ParsePrefix(value)
			port.Host = p.Addr()
		case "-p":
			port.Transport, err = ParseTransport(value)
		case "--dport":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 16)
			port.Port = uint16(n)
		case "--to-destination":
			pod, err = netip.ParseAddrPort(value)
		}
		if err != nil {
			return PodPorts{}, false
		}
	}
	port.PodPort = pod.Port()
	return PodPorts{pod.Addr(), []HostPort{port}}, pod.IsValid() && port.Port != 0 && port.Transport != 0
}

// PortsOf returns the ports of have that lead to the addresses of one pod, as the pod may
// have asked for them: what is open on all addresses of each of its families is open on all.
func PortsOf(addrs []netip.Addr, have []PodPorts) []HostPort {
	var list []HostPort
	families := map[HostPort]int{}
	for _, p := range have {
		if !slices.Contains(addrs, p.Pod) {
			continue
		}
		for _, port := range p.Ports {
			everywhere := port
			if everywhere.Host = (netip.Addr{}); port.Host.IsUnspecified() {
				families[everywhere]++
			}
			list = append(list, port)
		}
	}
	for i, port := range list {
		everywhere := port
		everywhere.Host = netip.Addr{}
		if port.Host.IsUnspecified() && families[everywhere] == len(addrs) {
			list[i] = everywhere
		}
	}
	return sortPorts(list)
}

// sortPorts returns each of the ports once, in the order of their texts. A sort of its own
// for ports would be large in the plugin, which sorts texts anyway.
func sortPorts(list []HostPort) []HostPort {
	var names []string
	named := map[string]HostPort{}
	for _, p := range list {
		name := fmt.Sprintf("%s\x00%d", p, p.PodPort)
		if _, known := named[name]; !known {
			names = append(names, name)
		}
		named[name] = p
	}
	slices.Sort(names)
	sorted := list[:0]
	for _, name := range names {
		sorted = append(sorted, named[name])
	}
	return sorted
}
