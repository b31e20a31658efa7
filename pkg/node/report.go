package node

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Report is a node state as people and scripts want to see it. Its JSON names are
// stable.
type Report struct {
	Routing   string          `json:"routing"`
	Firewall  string          `json:"firewall"`
	SNAT      bool            `json:"snat"`
	VPC       []netip.Prefix  `json:"vpcCIDRs"`
	CoolDown  string          `json:"coolDown"`
	Gated     []string        `json:"gatedNamespaces,omitempty"` // where pods get only what is reserved for them
	ENIs      []ReportENI     `json:"enis"`
	Addresses []ReportAddress `json:"addresses"`
	Damaged   []string        `json:"damaged,omitempty"`
	// UnreadRecords are the records of host ports and limits that can't be read, and why.
	UnreadRecords []string `json:"unreadRecords,omitempty"`
}

// ReportENI is an ENI with its addresses counted. Free ones can be handed out
// now.
type ReportENI struct {
	ID        string         `json:"id"`
	Index     int            `json:"index"`
	Device    string         `json:"device"`
	MTU       int            `json:"mtu"`
	Primary   []netip.Prefix `json:"primary"`
	Total     int            `json:"total"`
	Used      int            `json:"used"`
	Free      int            `json:"free"`
	Cooling   int            `json:"cooling"`
	Releasing int            `json:"releasing"`
	Held      int            `json:"held"`               // by others
	Reserved  int            `json:"reserved,omitempty"` // for pods that do not have them now
	Claimed   int            `json:"claimed,omitempty"`  // of Used: kept for their pods beyond their end
}

// ReportAddress is an address with its owner.
type ReportAddress struct {
	Address   netip.Addr `json:"address"`
	ENI       string     `json:"eni"`
	State     string     `json:"state"`
	Seconds   int        `json:"seconds"` // in this state
	Namespace string     `json:"namespace,omitempty"`
	Pod       string     `json:"pod,omitempty"`
	UID       string     `json:"uid,omitempty"`
	Network   string     `json:"network,omitempty"`
	Container string     `json:"container,omitempty"`
	IfName    string     `json:"ifname,omitempty"`
	Netns     string     `json:"netns,omitempty"`
	Kind      string     `json:"kind,omitempty"`
	HeldBy    string     `json:"heldBy,omitempty"`   // in the words of ip(8), of a held one
	Topology  string     `json:"topology,omitempty"` // of a reserved or claimed one

	// What the pod asked for beyond its addresses. Host ports are those that lead to this
	// address; RecordError says why they are not known.
	HostPorts   []ReportPort  `json:"hostPorts,omitempty"`
	Bandwidth   *ReportLimits `json:"bandwidth,omitempty"`
	RecordError string        `json:"recordError,omitempty"`
}

// NewReport reports s as it is at now, a time since boot. An address whose cooldown has passed
// is reported free.
func NewReport(s *ipam.State, now time.Duration) Report {
	r := Report{Routing: s.Settings.Routing.String(), Firewall: s.Settings.Firewall.String(), SNAT: s.Settings.SNAT,
		VPC: s.Settings.VPC, CoolDown: s.Settings.CoolDown.String(), Gated: s.Settings.Gated, ENIs: []ReportENI{}, Addresses: []ReportAddress{}}
	ids := map[int]string{}
	for _, nic := range s.ENIs {
		ids[nic.Index] = nic.ID
		c := s.Count(now, func(a eni.Address) bool { return a.ENI == nic.Index })
		e := ReportENI{ID: nic.ID, Index: nic.Index, Device: nic.Device, MTU: nic.MTU,
			Total: c.Total, Used: c.Used, Free: c.Free, Cooling: c.Cooling, Releasing: c.Releasing, Held: c.Held,
			Reserved: c.Reserved, Claimed: c.Claimed}
		for _, n := range nic.Nets() {
			e.Primary = append(e.Primary, n.Primary)
		}
		r.ENIs = append(r.ENIs, e)
	}
	for _, a := range s.Addresses {
		r.Addresses = append(r.Addresses, reportAddress(s, a, ids[a.ENI], now))
	}
	for _, d := range s.Damaged {
		r.Damaged = append(r.Damaged, d.Cause)
	}
	return r
}

func reportAddress(s *ipam.State, a eni.Address, id string, now time.Duration) ReportAddress {
	r := ReportAddress{Address: a.Addr, ENI: id, State: a.State.String(), Seconds: int((now - a.Since).Seconds()), HeldBy: a.HeldBy}
	if since, free := s.FreeSince(&a, now); free { // one that has cooled down, too
		r.State, r.Seconds = eni.Free.String(), int((now - since).Seconds())
	}
	if kept := a.Reservation; kept != nil {
		r.Topology, r.Namespace, r.Pod, r.UID = kept.Topology, kept.Namespace, kept.Pod, kept.UID
	}
	if a.IsClaimed() {
		r.State = "claimed"
	}
	if o := a.Owner; o != nil {
		r.Namespace, r.Pod, r.UID, r.Netns, r.Kind = o.Namespace, o.Pod, o.UID, o.Netns, o.Kind.String()
		r.Network, r.Container, r.IfName = o.Network, o.Container, o.IfName
	}
	return r
}
