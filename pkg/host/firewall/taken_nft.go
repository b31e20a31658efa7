package firewall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Chains of kube-proxy in iptables.
const (
	kubeServices  = "KUBE-SERVICES"
	kubeNodePorts = "KUBE-NODEPORTS"
)

// nftNatRules shows the rules of a table of nftables that may be for one of the ports. It
// reads a chain once, and decodes none of the other rules: kube-proxy makes one for each
// port of each Service.
type nftNatRules struct {
	raw   *netlink.Conn
	table *nftables.Table
	asked map[uint16]bool
	read  map[string][]natRule
}

func (n *nftNatRules) list(chain string) ([]natRule, error) {
	if rules, read := n.read[chain]; read {
		return rules, nil
	}
	// kube-proxy's chain for all Services is the longest of a node. For the node's own
	// addresses it leads to that of NodePorts: without a rule for the ports there, nothing
	// in it is for them, and it is not read.
	if chain == kubeServices {
		if ports, err := n.list(kubeNodePorts); err != nil || len(ports) == 0 {
			return nil, err
		}
	}
	messages, err := askNft(n.raw, n.table, unix.NFT_MSG_GETRULE, netlink.Dump,
		netlink.Attribute{Type: unix.NFTA_RULE_TABLE, Data: []byte(n.table.Name + "\x00")},
		netlink.Attribute{Type: unix.NFTA_RULE_CHAIN, Data: []byte(chain + "\x00")})
	if err != nil && !errors.Is(err, unix.ENOENT) { // the chain may be gone since
		return nil, fmt.Errorf("list rules of nftables table %s chain %s: %w", n.table.Name, chain, err)
	}
	var rules []natRule
	for _, m := range messages {
		for kind, body := range nftAttributes(m) {
			if kind != unix.NFTA_RULE_EXPRESSIONS {
				continue
			}
			number := requiredPort(body)
			if number == 0 || n.asked[number] {
				rules = append(rules, nftNatRule{n, number, decodeExpressions(byte(n.table.Family), body)})
			}
		}
	}
	n.read[chain] = rules
	return rules, nil
}

// nftNatRule is a rule with its expressions, nil for each that is not understood.
type nftNatRule struct {
	of    *nftNatRules
	port  uint16
	exprs []expr.Any
}

func (r nftNatRule) number() uint16 { return r.port }

func (r nftNatRule) target() string {
	for _, e := range r.exprs {
		if v, ok := e.(*expr.Verdict); ok {
			return v.Chain
		}
	}
	return ""
}

func (r nftNatRule) judge(p portProbe) (natView, error) {
	n := natPacket{probe: p, of: r.of, nftPacket: nftPacket{
		walk: &walk{flow: Flow{Family: p.family, In: p.in, Dst: p.to}}, view: ruleView{match: matches}}}
	n.out.byPort = r.port != 0
	for _, e := range r.exprs {
		if err := n.takeExpr(e); err != nil {
			return natView{}, err
		}
		if n.view.match == matchesNot {
			break // what follows is not asked
		}
	}
	n.out.ruleView = n.view
	return n.out, nil
}

// natPacket takes a packet to a port through the expressions of a rule.
type natPacket struct {
	nftPacket
	probe  portProbe
	of     *nftNatRules
	chance bool // the next lookup is for a number by chance
	out    natView
}

func (n *natPacket) takeExpr(e expr.Any) error {
	switch e := e.(type) {
	case nil:
		n.narrowMatch(mayMatch)
	case *expr.Meta:
		if e.Key == expr.MetaKeyL4PROTO && !e.SourceRegister {
			n.load(e.Register, []byte{byte(n.probe.transport)})
			return nil
		}
		n.nftPacket.takeExpr(e)
	case *expr.Payload:
		n.load(e.DestRegister, n.headerValue(e))
	case *expr.Fib:
		n.load(e.Register, nil)
		if e.ResultADDRTYPE && e.FlagDADDR {
			n.load(e.Register, binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL))
		}
	case *expr.Numgen:
		n.load(e.Register, nil)
		n.chance = true
	case *expr.Dynset: // notes who came
		if len(e.Exprs) > 0 {
			n.narrowMatch(mayMatch)
		}
	case *expr.Lookup:
		return n.findInSet(e)
	case *expr.NAT:
		if e.Type == expr.NATTypeDestNAT {
			n.noteTarget(n.readKnown(e.RegAddrMin, n.probe.to.BitLen()/8), n.readKnown(e.RegProtoMin, 2))
		}
	case *expr.Redir:
		n.noteTarget(nil, n.readKnown(e.RegisterProtoMin, 2))
	case *expr.Match:
		n.narrowMatch(n.xtPortMatch(e))
	case *expr.Target:
		n.natTarget(e)
	default:
		n.nftPacket.takeExpr(e)
	}
	return nil
}

// headerValue returns what is known of the packet's headers.
func (n *natPacket) headerValue(e *expr.Payload) []byte {
	protocol := uint32(9)
	if n.probe.family == eni.IPv6 {
		protocol = 6
	}
	switch {
	case e.Base == expr.PayloadBaseTransportHeader && e.Offset == 2 && e.Len == 2:
		return binaryutil.BigEndian.PutUint16(n.probe.port)
	case e.Base == expr.PayloadBaseTransportHeader:
		return nil
	case e.Base == expr.PayloadBaseNetworkHeader && e.Offset == protocol && e.Len == 1:
		return []byte{byte(n.probe.transport)}
	}
	return n.payloadValue(e)
}

// noteTarget notes where the packet leads from here, as far as it is known.
func (n *natPacket) noteTarget(addr, port []byte) {
	n.out.translates, n.out.to = true, "another port of the node"
	to, known := netip.AddrFromSlice(addr)
	var number uint16
	if len(port) == 2 {
		number = binary.BigEndian.Uint16(port)
	}
	switch {
	case known && number != 0:
		n.out.to = netip.AddrPortFrom(to, number).String()
	case known:
		n.out.to = to.String()
	case number != 0:
		n.out.to = fmt.Sprintf("port %d of the node", number)
	}
}

func (n *natPacket) natTarget(e *expr.Target) {
	switch e.Name {
	case "DNAT":
		n.out.translates, n.out.to = true, "another address"
		var r *xt.NatRange
		switch info := e.Info.(type) {
		case *xt.NatRange:
			r = info
		case *xt.NatRange2:
			r = &info.NatRange
		}
		if r != nil {
			addr := r.MinIP
			// net.IP may hold IPv4 in sixteen bytes, which netip takes for an address of IPv6.
			if v4 := addr.To4(); v4 != nil {
				addr = v4
			}
			n.noteTarget(addr, binaryutil.BigEndian.PutUint16(r.MinPort))
		}
	case "REDIRECT":
		n.noteTarget(nil, nil)
	default:
		n.takeTarget(e)
	}
}

// xtPortMatch judges what older iptables leave to matches of their own.
func (n *natPacket) xtPortMatch(e *expr.Match) match {
	switch info := e.Info.(type) {
	case *xt.AddrTypeV1:
		if info.Source == 0 && info.Flags&^2 == 0 { // 2: all but this type
			m := matchIf(xt.AddrTypeFlags(info.Dest)&xt.AddrTypeLocal != 0)
			if info.Flags != 0 {
				m = m.not()
			}
			return m
		}
		return mayMatch
	case *xt.Tcp:
		if info.SrcPorts == [2]uint16{0, 65535} && info.FlagsMask == 0 && info.Option == 0 && info.InvFlags == 0 {
			return matchIf(info.DstPorts[0] <= n.probe.port && n.probe.port <= info.DstPorts[1])
		}
		return mayMatch
	case *xt.Udp:
		if info.SrcPorts == [2]uint16{0, 65535} && info.InvFlags == 0 {
			return matchIf(info.DstPorts[0] <= n.probe.port && n.probe.port <= info.DstPorts[1])
		}
		return mayMatch
	}
	return n.xtMatch(e)
}
