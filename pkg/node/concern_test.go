package node

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/host/events"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// web is the link of a pod.
const web = "eni0123456789a"

// testLinks are eth0 and eth1, which are ENIs, a pod's link and others' links.
var testLinks = known{devices: map[string]bool{"eth0": true, "eth1": true}, tables: map[int]bool{100: true, 101: true}, links: map[int]string{1: "lo", 2: "eth0", 3: "eth1", 7: web, 12: "enb0123456789a", 13: "kube-ipvs0", 8: "cali1", 9: "eni-foreign"}, without6: true}

func TestWhatAChangeMeans(t *testing.T) {
	pod, host, net, all := netip.MustParsePrefix("10.0.0.9/32"), netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.1.0.0/16"), netip.Prefix{}
	table1 := netconf.Table(1)
	for name, tt := range map[string]struct {
		event events.Event
		want  concern
		of    string
	}{
		"overflow":              {event: events.Event{}, want: fault},
		"ENI down":              {event: events.Event{Kind: events.Link, Link: 3, Name: "eth1", Toggled: true}, want: fault},
		"ENI up":                {event: events.Event{Kind: events.Link, Link: 3, Name: "eth1", Toggled: true, Up: true}, want: fault},
		"ENI gone":              {event: events.Event{Kind: events.Link, Link: 3, Name: "eth1", Gone: true}, want: fault},
		"ENI made":              {event: events.Event{Kind: events.Link, Link: 10, Name: "eth1", Made: true}, want: fault},
		"ENI renamed":           {event: events.Event{Kind: events.Link, Link: 3, Name: "ens5", Up: true}, want: fault},
		"ENI's statistics":      {event: events.Event{Kind: events.Link, Link: 3, Name: "eth1", Up: true}},
		"pod's link made":       {event: events.Event{Kind: events.Link, Link: 11, Name: "eni0123456789b", Made: true}},
		"pod's link up":         {event: events.Event{Kind: events.Link, Link: 7, Name: web, Toggled: true, Up: true}, want: restored, of: web},
		"pod's link down":       {event: events.Event{Kind: events.Link, Link: 7, Name: web, Toggled: true}, want: suspect, of: web},
		"pod's link gone":       {event: events.Event{Kind: events.Link, Link: 7, Name: web, Gone: true}, want: suspect, of: web},
		"another's link gone":   {event: events.Event{Kind: events.Link, Link: 8, Name: "cali1", Gone: true}},
		"a link named likewise": {event: events.Event{Kind: events.Link, Link: 9, Name: "eni-foreign", Gone: true}},

		"limit of what a pod receives":      {event: events.Event{Kind: events.Qdisc, Type: "tbf", Link: 7, Gone: true}, want: suspect, of: web},
		"limit of what a pod sends":         {event: events.Event{Kind: events.Qdisc, Type: "tbf", Link: 12, Gone: true}, want: suspect, of: web},
		"limit's link gone":                 {event: events.Event{Kind: events.Link, Name: "enb0123456789a", Link: 12, Gone: true}, want: suspect, of: web},
		"limit's link down":                 {event: events.Event{Kind: events.Link, Name: "enb0123456789a", Link: 12, Toggled: true}, want: suspect, of: web},
		"limit's link up":                   {event: events.Event{Kind: events.Link, Name: "enb0123456789a", Link: 12, Toggled: true, Up: true}},
		"limit's link made":                 {event: events.Event{Kind: events.Link, Name: "enb0123456789a", Link: 12, Made: true}},
		"limit's queue for filters gone":    {event: events.Event{Kind: events.Qdisc, Type: "clsact", Link: 7, Gone: true}, want: suspect, of: web},
		"an earlier release's":              {event: events.Event{Kind: events.Qdisc, Type: "ingress", Link: 7, Gone: true}, want: suspect, of: web},
		"limit's filter gone":               {event: events.Event{Kind: events.Filter, Type: "u32", Link: 7, Gone: true}, want: suspect, of: web},
		"limit's filter":                    {event: events.Event{Kind: events.Filter, Type: "u32", Link: 7}},
		"a queue that makes room for limit": {event: events.Event{Kind: events.Qdisc, Type: "noqueue", Link: 7, Gone: true}},
		"another's filter on a pod's link":  {event: events.Event{Kind: events.Filter, Type: "bpf", Link: 7, Gone: true}},
		"a queue of an ENI":                 {event: events.Event{Kind: events.Qdisc, Type: "tbf", Link: 3, Gone: true}},

		"ENI's address gone":        {event: events.Event{Kind: events.Address, Link: 3, Prefix: host, Gone: true}, want: fault},
		"ENI's address again":       {event: events.Event{Kind: events.Address, Link: 3, Prefix: host}},
		"a service's address":       {event: events.Event{Kind: events.Address, Link: 13, Prefix: host}, want: fault},
		"a service's is gone":       {event: events.Event{Kind: events.Address, Link: 13, Prefix: host, Gone: true}, want: fault},
		"a pod's link's address":    {event: events.Event{Kind: events.Address, Link: 7, Prefix: host}, want: fault},
		"it goes with the link":     {event: events.Event{Kind: events.Address, Link: 7, Prefix: host, Gone: true}},
		"a pod's link's of IPv6":    {event: events.Event{Kind: events.Address, Link: 7, IPv6: true, Prefix: netip.MustParsePrefix("fe80::1/128")}},
		"another's address":         {event: events.Event{Kind: events.Address, Link: 8, Prefix: host}},
		"another's address gone":    {event: events.Event{Kind: events.Address, Link: 8, Prefix: host, Gone: true}},
		"pod's IPv6 on again":       {event: events.Event{Kind: events.Route, Link: 7, IPv6: true, Prefix: netip.MustParsePrefix("ff00::/8"), Table: netconf.LocalTable, Protocol: 2}, want: suspect, of: web},
		"pod's IPv6 off":            {event: events.Event{Kind: events.Route, Link: 7, IPv6: true, Prefix: netip.MustParsePrefix("ff00::/8"), Table: netconf.LocalTable, Protocol: 2, Gone: true}},
		"another's IPv6 on":         {event: events.Event{Kind: events.Route, Link: 8, IPv6: true, Prefix: netip.MustParsePrefix("ff00::/8"), Table: netconf.LocalTable, Protocol: 2}},
		"pod's route":               {event: events.Event{Kind: events.Route, Prefix: pod, Table: netconf.PodsTable, Protocol: netconf.PodsProtocol, Unicast: true}, want: restored, of: "10.0.0.9"},
		"pod's route gone":          {event: events.Event{Kind: events.Route, Prefix: pod, Table: netconf.PodsTable, Protocol: netconf.PodsProtocol, Unicast: true, Gone: true}, want: suspect, of: "10.0.0.9"},
		"pod's route in main gone":  {event: events.Event{Kind: events.Route, Prefix: pod, Table: netconf.MainTable, Protocol: netconf.Protocol, Unicast: true, Gone: true}, want: suspect, of: "10.0.0.9"},
		"pod's route in main":       {event: events.Event{Kind: events.Route, Prefix: pod, Table: netconf.MainTable, Protocol: netconf.Protocol, Unicast: true}, want: fault},
		"pod's route replaced":      {event: events.Event{Kind: events.Route, Prefix: pod, Table: netconf.PodsTable, Protocol: 4, Unicast: true, Replaced: true}, want: suspect, of: "10.0.0.9"},
		"another's host route":      {event: events.Event{Kind: events.Route, Prefix: pod, Table: netconf.MainTable, Protocol: 4, Unicast: true}},
		"ENI's default":             {event: events.Event{Kind: events.Route, Prefix: all, Table: table1, Protocol: netconf.Protocol, Unicast: true}},
		"ENI's default gone":        {event: events.Event{Kind: events.Route, Prefix: all, Table: table1, Protocol: netconf.Protocol, Unicast: true, Gone: true}, want: fault},
		"ENI's default replaced":    {event: events.Event{Kind: events.Route, Prefix: all, Table: table1, Protocol: 4, Unicast: true, Replaced: true}, want: fault},
		"others' in an ENI's table": {event: events.Event{Kind: events.Route, Prefix: net, Table: table1, Protocol: 4, Unicast: true}, want: fault},
		"gone from there":           {event: events.Event{Kind: events.Route, Prefix: all, Table: table1, Protocol: 4, Unicast: true, Gone: true}, want: fault},
		"in no ENI's table":         {event: events.Event{Kind: events.Route, Prefix: net, Table: table1 + 9, Protocol: 4, Unicast: true}},
		"node's default gone":       {event: events.Event{Kind: events.Route, Prefix: all, Table: netconf.MainTable, Protocol: 16, Unicast: true, Gone: true}, want: fault},
		"node's default":            {event: events.Event{Kind: events.Route, Prefix: all, Table: netconf.MainTable, Protocol: 16, Unicast: true}, want: fault},
		"another table's default":   {event: events.Event{Kind: events.Route, Prefix: all, Table: 7, Protocol: 16, Unicast: true, Gone: true}},
		"another's route":           {event: events.Event{Kind: events.Route, Prefix: net, Table: netconf.MainTable, Protocol: 16, Unicast: true, Gone: true}},

		"rule":             {event: events.Event{Kind: events.Rule, Priority: netconf.PriorityPods, Protocol: netconf.PodsProtocol}},
		"rule gone":        {event: events.Event{Kind: events.Rule, Priority: netconf.PriorityPods, Protocol: netconf.PodsProtocol, Gone: true}, want: fault},
		"ENI's rule gone":  {event: events.Event{Kind: events.Rule, Priority: netconf.PriorityPrimary, Prefix: host, Protocol: netconf.Protocol, Gone: true}, want: fault},
		"pod's rule":       {event: events.Event{Kind: events.Rule, Priority: netconf.PrioritySource, Prefix: pod, Protocol: netconf.Protocol}, want: restored, of: "10.0.0.9"},
		"pod's rule gone":  {event: events.Event{Kind: events.Rule, Priority: netconf.PrioritySource, Prefix: pod, Protocol: netconf.Protocol, Gone: true}, want: suspect, of: "10.0.0.9"},
		"another's gone":   {event: events.Event{Kind: events.Rule, Priority: 1600, Protocol: 4, Gone: true}, want: fault},
		"the main table's": {event: events.Event{Kind: events.Rule, Priority: netconf.PriorityMain, Protocol: 2, Gone: true}, want: fault},
		"behind the main":  {event: events.Event{Kind: events.Rule, Priority: 32767, Protocol: 2}},
		"others' before":   {event: events.Event{Kind: events.Rule, Priority: 511, Protocol: 4}, want: fault},
		"it is gone again": {event: events.Event{Kind: events.Rule, Priority: 511, Protocol: 4, Gone: true}, want: fault},
		"of one source":    {event: events.Event{Kind: events.Rule, Priority: 511, Prefix: pod, Protocol: 3}},
		"of one target":    {event: events.Event{Kind: events.Rule, Priority: 511, To: pod, Protocol: 3}},
		"of one pod":       {event: events.Event{Kind: events.Rule, Priority: 512, Prefix: pod, Protocol: 3}},
		"others' between":  {event: events.Event{Kind: events.Rule, Priority: 1000, Prefix: net, Protocol: 3}, want: fault},
		"before the last":  {event: events.Event{Kind: events.Rule, Priority: netconf.PrioritySource - 1, Protocol: 3}, want: fault},
		"others' behind":   {event: events.Event{Kind: events.Rule, Priority: netconf.PrioritySource, Protocol: 3}, want: fault},
		"pod's neighbour":  {event: events.Event{Kind: events.Neighbour, Link: 7, Prefix: pod, Permanent: true}, want: restored, of: "10.0.0.9"},
		"it is gone":       {event: events.Event{Kind: events.Neighbour, Link: 7, Prefix: pod, Gone: true}, want: suspect, of: "10.0.0.9"},
		"ENI's neighbour":  {event: events.Event{Kind: events.Neighbour, Link: 3, Prefix: host, Gone: true}},
		"forwarding off":   {event: events.Event{Kind: events.Netconf, Link: events.AllLinks, Forwarding: 0, RPFilter: events.Unknown}, want: fault},
		"forwarding on":    {event: events.Event{Kind: events.Netconf, Link: events.AllLinks, Forwarding: 1, RPFilter: events.Unknown}},
		"all rp_filter":    {event: events.Event{Kind: events.Netconf, Link: events.AllLinks, Forwarding: events.Unknown, RPFilter: 1}, want: fault},
		"ENI's rp_filter":  {event: events.Event{Kind: events.Netconf, Link: 3, Forwarding: events.Unknown, RPFilter: 1}, want: fault},
		"ENI's is right":   {event: events.Event{Kind: events.Netconf, Link: 3, Forwarding: events.Unknown, RPFilter: 2}},
		"pod's rp_filter":  {event: events.Event{Kind: events.Netconf, Link: 7, Forwarding: events.Unknown, RPFilter: 0}, want: suspect, of: web},
		"pod's is right":   {event: events.Event{Kind: events.Netconf, Link: 7, Forwarding: events.Unknown, RPFilter: 1}, want: restored, of: web},
		"ENI's forwarding": {event: events.Event{Kind: events.Netconf, Link: 3, Forwarding: 0, RPFilter: events.Unknown}, want: fault},
		"ENI's is on":      {event: events.Event{Kind: events.Netconf, Link: 3, Forwarding: 1, RPFilter: events.Unknown}},
		"ENI's with IPv6":  {event: events.Event{Kind: events.Netconf, IPv6: true, Link: 3, Forwarding: 0, RPFilter: events.Unknown}},
		"pod's forwarding": {event: events.Event{Kind: events.Netconf, Link: 7, Forwarding: 0, RPFilter: events.Unknown}, want: suspect, of: web},
		"pod's is on":      {event: events.Event{Kind: events.Netconf, Link: 7, Forwarding: 1, RPFilter: events.Unknown}},
		"another's filter": {event: events.Event{Kind: events.Netconf, Link: 8, Forwarding: events.Unknown, RPFilter: 0}},

		"our table":           {event: events.Event{Kind: events.Nftables, NftTable: "enipool", Gone: true}, want: fault},
		"element of ours":     {event: events.Event{Kind: events.Nftables, NftTable: "enipool", NftSet: "source4"}, want: fault},
		"host port":           {event: events.Event{Kind: events.Nftables, NftTable: "enipool-pods", NftSet: "hostport4", Gone: true}},
		"our second table":    {event: events.Event{Kind: events.Nftables, NftTable: "enipool-pods", Gone: true}, want: fault},
		"reply mark":          {event: events.Event{Kind: events.Nftables, NftTable: "enipool-pods", NftSet: "replies"}, want: fault},
		"another's table":     {event: events.Event{Kind: events.Nftables, NftTable: "kube-proxy", Gone: true}},
		"our chain in theirs": {event: events.Event{Kind: events.Nftables, NftTable: "nat", Text: []byte("\x00ENIPOOL-SNAT-2a\x00"), Gone: true}, want: fault},
		"host port in theirs": {event: events.Event{Kind: events.Nftables, NftTable: "nat", Text: []byte("\x00ENIPODS-ports\x00dport")}},
		"what leads to it":    {event: events.Event{Kind: events.Nftables, NftTable: "nat", Text: []byte("\x00ENIPODS-PORTIN-2a\x00ENIPODS-ports\x00"), Gone: true}, want: fault},
		"replies' in theirs":  {event: events.Event{Kind: events.Nftables, NftTable: "mangle", Text: []byte("\x00ENIPODS-REPLY-2a\x00"), Gone: true}, want: fault},
		"their chain":         {event: events.Event{Kind: events.Nftables, NftTable: "nat", Text: []byte("\x00KUBE-SERVICES\x00"), Gone: true}},
	} {
		got, of := testLinks.judge(tt.event)
		if got != tt.want || of != tt.of {
			t.Errorf("%s: concern %d of %q, want %d of %q", name, got, of, tt.want, tt.of)
		}
	}
}

// FuzzConcern: whatever the kernel may announce, suspicions have a name, and what is
// made where pods' packets never look is no fault: others make thousands there.
func FuzzConcern(f *testing.F) {
	route := func(kind uint16, body ...byte) []byte {
		b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
		return append(append(binary.NativeEndian.AppendUint16(b, kind), make([]byte, 10)...), body...)
	}
	f.Add(route(unix.RTM_DELROUTE, unix.AF_INET, 32, 0, 0, 100, 70, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 9))
	f.Add(route(unix.RTM_NEWROUTE, unix.AF_INET, 0, 0, 0, 254, 16, 0, 1, 0, 0, 0, 0))
	f.Add(route(unix.RTM_DELRULE, unix.AF_INET, 0, 0, 0, 100, 0, 0, 1, 0, 0, 0, 0, 8, 0, 6, 0, 0, 2, 0, 0, 5, 0, 21, 0, 69, 0, 0, 0))
	f.Add(route(unix.RTM_NEWNETCONF, unix.AF_INET, 0, 0, 0, 8, 0, 1, 0, 3, 0, 0, 0, 8, 0, 3, 0, 0, 0, 0, 0))
	f.Add(route(unix.RTM_NEWROUTE, unix.AF_INET, 32, 0, 0, 101, 16, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 9))
	f.Add(route(unix.RTM_NEWRULE, unix.AF_INET, 0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 8, 0, 6, 0, 0, 1, 0, 0))
	f.Add(route(unix.RTM_NEWRULE, unix.AF_INET, 0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 8, 0, 6, 0, 1, 6, 0, 0))
	f.Add(route(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_DELTABLE, 1, 0, 0, 0, 12, 0, 1, 0, 'e', 'n', 'i', 'p', 'o', 'o', 'l', 0))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		judge := func(e events.Event) {
			c, name := testLinks.judge(e)
			if pods := c == suspect || c == restored; pods != (name != "") {
				t.Errorf("%+v: concern %d of %q", e, c, name)
			}
			if c == fault && isMadeElsewhere(e) {
				t.Errorf("%+v is a fault", e)
			}
		}
		for e := range events.ParseRoute(datagram) {
			judge(e)
		}
		for e := range events.ParseNft(datagram) {
			judge(e)
		}
	})
}

// isMadeElsewhere tells whether a route or rule was made that takes no pod's packets elsewhere:
// a rule of ours, one behind the kernel's own to the main table, or a route in a table that
// is neither ours nor the main one.
func isMadeElsewhere(e events.Event) bool {
	switch {
	case e.Gone || e.Replaced:
		return false
	case e.Kind == events.Rule:
		return isOurs(e) || e.Priority > netconf.PriorityMain
	}
	return e.Kind == events.Route && !testLinks.tables[e.Table] && e.Table != netconf.MainTable
}
