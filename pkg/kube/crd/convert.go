package crd

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the protocol's decisions take and return are values of pkg/order; here is how they stand in an object.
// Reading fails as a whole: a list without one entry that can't be read is another list, and an accepted address
// that was left out would be a pod's again. What only a later release has is read as what nobody acts on: an ENI of an unknown
// state stays as it is, and keeps the name of its state.

// View returns both halves of an object, of one resourceVersion.
func View(n *NodeNetwork) (order.View, error) {
	spec, wrong := n.Spec.Read()
	status, bad := n.Status.Read()
	if err := errors.Join(wrong, bad); err != nil {
		return order.View{}, fmt.Errorf("NodeNetwork %s: %w", n.Name, err)
	}
	return order.View{Spec: spec, Status: status}, nil
}

var familyNames = map[eni.Family]string{eni.IPv4: "IPv4", eni.IPv6: "IPv6"}

// reader reads the parts of an object and keeps what is wrong with them.
type reader struct{ errs []error }

func (r *reader) note(field string, err error) {
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", field, err))
	}
}

func (r *reader) prefixes(field string, list []string) (all []netip.Prefix) {
	for _, s := range list {
		p, err := parsePrefix(s)
		r.note(field, err)
		all = append(all, p)
	}
	return all
}

// parsePrefix reads an address, which is a host prefix, or a delegated prefix.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && p != p.Masked() {
		err = fmt.Errorf("%s has host bits", p)
	}
	return p, err
}

// FormatPrefix returns an address or a delegated prefix as objects have it.
func FormatPrefix(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

func formatPrefixes(list []netip.Prefix) (texts []string) {
	for _, p := range list {
		texts = append(texts, FormatPrefix(p))
	}
	return texts
}

// parseMode reads a mode. An object that nobody has written a status of yet is its agent's own.
func parseMode(m Mode) (order.Mode, error) {
	if m == "" {
		return order.Self, nil
	}
	for _, known := range []order.Mode{order.Self, order.Joining, order.Leaving, order.Operator} {
		if known.String() == string(m) {
			return known, nil
		}
	}
	return order.Self, fmt.Errorf("unknown mode %q", m)
}

// Read returns what the agent asks for.
func (s NodeNetworkSpec) Read() (order.Spec, error) {
	var r reader
	mode, err := parseMode(s.Mode)
	r.note("mode", err)
	config, err := s.Pool.Read()
	r.note("pool", err)
	spec := order.Spec{Mode: mode, Slots: int(s.Slots), Waiting: int(s.Waiting), Pool: config,
		Release: r.prefixes("release", s.Release), Held: r.prefixes("held", s.Held), Boot: s.Boot, SeenRevision: s.SeenRevision, SeenEpoch: s.SeenEpoch,
		ReleaseInterfaces: s.ReleaseInterfaces, NoLink: s.NoLink, Idle: s.Idle}
	for _, name := range s.Families {
		f, err := parseFamily(name)
		r.note("families", err)
		spec.Families = append(spec.Families, f)
	}
	return spec, errors.Join(r.errs...)
}

func parseFamily(name string) (eni.Family, error) {
	for f, known := range familyNames {
		if known == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("unknown address family %q", name)
}

// Read returns the settings by which the operator plans. Those that the object does not have are their agent's own affair.
func (p Pool) Read() (pool.Config, error) {
	c := pool.Config{FirstENI: int(p.FirstENI), MaxAllocate: int(p.MaxAllocate), Multiple: int(p.Multiple), Partial: p.Partial,
		ReturnENIs: p.ReturnENIs, MinAllocate: int(p.MinAllocate), PreAllocate: int(p.PreAllocate), MaxAboveWatermark: int(p.MaxAboveWatermark)}
	c.MaxAllocateENI, c.MaxIPsPerENI, c.PreAllocateENI, c.TopologyPlaces = int(p.MaxAllocateENI), int(p.MaxIPsPerENI), int(p.PreAllocateENI), int(p.TopologyPlaces)
	c.Scale.Batch = int(p.Batch)
	if p.Mode == "" {
		return c, nil
	}
	var err error
	c.Mode, err = pool.ParseMode(p.Mode)
	return c, err
}

// Write puts what the agent asks for into its spec, and leaves alone what the protocol does not know of.
func (s *NodeNetworkSpec) Write(from order.Spec) {
	c := from.Pool
	s.Mode, s.Slots, s.Waiting = Mode(from.Mode.String()), int32(from.Slots), int32(from.Waiting)
	s.Pool = Pool{Mode: c.Mode.String(), Batch: int32(c.Scale.Batch), FirstENI: int32(c.FirstENI), MaxAllocate: int32(c.MaxAllocate),
		MaxAllocateENI: int32(c.MaxAllocateENI), MaxIPsPerENI: int32(c.MaxIPsPerENI), PreAllocateENI: int32(c.PreAllocateENI),
		Multiple: int32(c.Multiple), Partial: c.Partial, ReturnENIs: c.ReturnENIs, TopologyPlaces: int32(c.TopologyPlaces),
		MinAllocate: int32(c.MinAllocate), PreAllocate: int32(c.PreAllocate), MaxAboveWatermark: int32(c.MaxAboveWatermark)}
	s.Families = nil
	for _, f := range from.Families {
		s.Families = append(s.Families, familyNames[f])
	}
	s.Release, s.Held = formatPrefixes(from.Release), formatPrefixes(from.Held)
	s.ReleaseInterfaces, s.NoLink, s.Idle = from.ReleaseInterfaces, from.NoLink, from.Idle
	s.Boot, s.SeenRevision, s.SeenEpoch = from.Boot, from.SeenRevision, from.SeenEpoch
}

// Read returns what the operator tells the node.
func (s NodeNetworkStatus) Read() (order.Status, error) {
	var r reader
	mode, err := parseMode(s.Mode)
	r.note("mode", err)
	status := order.Status{Mode: mode, Revision: s.Revision, Epoch: s.Epoch, Created: s.Created, Limits: s.Limits.Read(),
		Releasing: r.prefixes("releasing", s.Releasing), LeavingInterfaces: s.LeavingInterfaces}
	for _, l := range s.Leaders {
		status.Leaders = append(status.Leaders, order.Leader(l))
	}
	for _, e := range s.ENIs {
		status.ENIs = append(status.ENIs, r.readENI(e))
	}
	for _, q := range s.Quarantined {
		p, err := parsePrefix(q.Address)
		r.note("quarantined", err)
		status.Quarantined = append(status.Quarantined, order.Quarantined{Prefix: p, Until: q.Until.Time})
	}
	for _, held := range s.Reserved {
		a, err := netip.ParseAddr(held.Address)
		r.note("reserved", err)
		status.Reserved = append(status.Reserved, order.Reserved{Addr: a, Topology: held.Topology, Namespace: held.Namespace, Pod: held.Pod, UID: held.UID})
	}
	return status, errors.Join(r.errs...)
}

func (r *reader) readENI(e ENI) order.ENI {
	made := order.ENI{ID: e.ID, Index: int(e.Index), MAC: e.MAC, Subnet: e.Subnet, Token: e.Token, Topology: e.Topology,
		V4: r.readNet(e.V4), V6: r.readNet(e.V6), Addresses: r.prefixes("enis", e.Addresses)}
	made.State, made.Said = order.Unknown, e.State
	for _, state := range []order.ENIState{order.Creating, order.Attached, order.Detached, order.ENILeaving} {
		if state.String() == e.State {
			made.State, made.Said = state, ""
		}
	}
	return made
}

func (r *reader) readNet(f *Family) (in eni.Net) {
	if f == nil {
		return in
	}
	var err error
	in.Primary, err = netip.ParsePrefix(f.Primary)
	r.note("enis", err)
	if f.Gateway != "" {
		in.Gateway, err = netip.ParseAddr(f.Gateway)
		r.note("enis", err)
	}
	return in
}

// Read returns the limits, none where they are not known yet.
func (l *Limits) Read() eni.Limits {
	if l == nil {
		return eni.Limits{}
	}
	return eni.Limits{ENIs: int(l.Interfaces), V4: int(l.V4), V6: int(l.V6), V4Block: l.V4Block.read(), V6Block: l.V6Block.read(), NoPrimary: l.NoPrimary}
}

func (b *Block) read() eni.Block {
	if b == nil {
		return eni.Block{}
	}
	return eni.Block{Bits: int(b.Bits), Size: int(b.Size)}
}

// WriteLimits returns the limits as an object has them.
func WriteLimits(l eni.Limits) *Limits {
	if l == (eni.Limits{}) {
		return nil
	}
	return &Limits{Interfaces: int32(l.ENIs), V4: int32(l.V4), V6: int32(l.V6), V4Block: writeBlock(l.V4Block), V6Block: writeBlock(l.V6Block), NoPrimary: l.NoPrimary}
}

func writeBlock(b eni.Block) *Block {
	if b == (eni.Block{}) {
		return nil
	}
	return &Block{Bits: int32(b.Bits), Size: int32(b.Size)}
}

// Write puts what the operator decides into a status, and leaves alone what the protocol does not know of: also when ENIs
// that are there already were made.
func (s *NodeNetworkStatus) Write(from order.Status) {
	created := map[string]*metav1.Time{}
	for _, e := range s.ENIs {
		created[e.ID] = e.Created
	}
	s.Mode, s.Revision, s.Epoch, s.Created, s.Limits = Mode(from.Mode.String()), from.Revision, from.Epoch, from.Created, WriteLimits(from.Limits)
	s.ENIs, s.Quarantined, s.Reserved, s.Leaders = nil, nil, nil, nil
	for _, l := range from.Leaders {
		s.Leaders = append(s.Leaders, Leader(l))
	}
	for _, e := range from.ENIs {
		state := e.State.String()
		if e.State == order.Unknown {
			state = e.Said
		}
		s.ENIs = append(s.ENIs, ENI{ID: e.ID, Index: int32(e.Index), MAC: e.MAC, Subnet: e.Subnet, State: state, Token: e.Token,
			Topology: e.Topology, V4: writeNet(e.V4), V6: writeNet(e.V6), Addresses: formatPrefixes(e.Addresses), Created: created[e.ID]})
	}
	s.Releasing, s.LeavingInterfaces = formatPrefixes(from.Releasing), from.LeavingInterfaces
	for _, q := range from.Quarantined {
		// The object has whole seconds: an end that was rounded down would come before the fence.
		until := q.Until.Truncate(time.Second)
		if until.Before(q.Until) {
			until = until.Add(time.Second)
		}
		s.Quarantined = append(s.Quarantined, Quarantined{Address: FormatPrefix(q.Prefix), Until: metav1.Time{Time: until}})
	}
	for _, r := range from.Reserved {
		s.Reserved = append(s.Reserved, Reserved{Address: r.Addr.String(), Topology: r.Topology, Namespace: r.Namespace, Pod: r.Pod, UID: r.UID})
	}
}

func writeNet(in eni.Net) *Family {
	if !in.IsValid() {
		return nil
	}
	f := &Family{Primary: in.Primary.String()}
	if in.Gateway.IsValid() {
		f.Gateway = in.Gateway.String()
	}
	return f
}
