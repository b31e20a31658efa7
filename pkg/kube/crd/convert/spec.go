package convert

import (
	"errors"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// Spec reads a spec. A mode that this release does not know is Self: nobody calls the cloud by it then,
// because the status has the same mode before anybody does.
func Spec(s crd.NodeNetworkSpec) (order.Spec, order.Asks, error) {
	var r reader
	spec := order.Spec{Slots: int(s.Slots), Waiting: int(s.Waiting), Pool: r.readPool(s.Pool), TopologyPlaces: int(s.Pool.TopologyPlaces),
		Release: r.parsePrefixes(s.Release), ReleaseInterfaces: slices.Clone(s.ReleaseInterfaces), Held: r.parsePrefixes(s.Held),
		NoLink: slices.Clone(s.NoLink), Idle: slices.Clone(s.Idle), Boot: s.Boot, SeenRevision: s.SeenRevision}
	if s.Mode == crd.Operator {
		spec.Mode = order.Operator
	}
	for _, text := range s.Families {
		f, known := families[text]
		if !known {
			r.noteWrong(fmt.Errorf("unknown family %q", text))
		}
		spec.Families = append(spec.Families, f)
	}
	asks := order.Asks{WaitingSince: timeOf(s.WaitingSince)}
	if h := s.Handover; h != nil {
		asks.Handover = order.Handover{Tokens: slices.Clone(h.Tokens), Release: r.parsePrefixes(h.Release), ReleaseInterfaces: slices.Clone(h.ReleaseInterfaces)}
	}
	return spec, asks, errors.Join(r.errs...)
}

// ToSpec is the opposite of Spec. Topologies are not of a node alone: they stay as they were.
func ToSpec(spec order.Spec, asks order.Asks, was crd.NodeNetworkSpec) crd.NodeNetworkSpec {
	next := crd.NodeNetworkSpec{Mode: modeText(spec.Mode), Slots: int32(spec.Slots), Waiting: int32(spec.Waiting), WaitingSince: timeAt(asks.WaitingSince),
		Pool: poolText(spec.Pool), Release: prefixTexts(spec.Release), ReleaseInterfaces: slices.Clone(spec.ReleaseInterfaces), Held: prefixTexts(spec.Held),
		NoLink: slices.Clone(spec.NoLink), Idle: slices.Clone(spec.Idle), Topologies: was.Topologies, Boot: spec.Boot, SeenRevision: spec.SeenRevision}
	next.Pool.TopologyPlaces = int32(spec.TopologyPlaces)
	for _, f := range spec.Families {
		next.Families = append(next.Families, familyText(f))
	}
	if h := asks.Handover; !h.IsEmpty() {
		next.Handover = &crd.Handover{Tokens: slices.Clone(h.Tokens), Release: prefixTexts(h.Release), ReleaseInterfaces: slices.Clone(h.ReleaseInterfaces)}
	}
	return next
}

// readPool reads the settings of the pool. Of the sizing there is the batch alone: the rest is the agent's own affair.
func (r *reader) readPool(p crd.Pool) pool.Config {
	c := pool.Config{FirstENI: int(p.FirstENI), MaxAllocate: int(p.MaxAllocate), MaxAllocateENI: int(p.MaxAllocateENI),
		MaxIPsPerENI: int(p.MaxIPsPerENI), PreAllocateENI: int(p.PreAllocateENI), Multiple: int(p.Multiple), Partial: p.Partial, ReturnENIs: p.ReturnENIs,
		MinAllocate: int(p.MinAllocate), PreAllocate: int(p.PreAllocate), MaxAboveWatermark: int(p.MaxAboveWatermark)}
	c.Scale.Batch = int(p.Batch)
	if p.Mode != "" {
		var err error
		c.Mode, err = pool.ParseMode(p.Mode)
		r.noteWrong(err)
	}
	return c
}

func poolText(c pool.Config) crd.Pool {
	return crd.Pool{Mode: c.Mode.String(), Batch: int32(c.Scale.Batch), FirstENI: int32(c.FirstENI), MaxAllocate: int32(c.MaxAllocate),
		MaxAllocateENI: int32(c.MaxAllocateENI), MaxIPsPerENI: int32(c.MaxIPsPerENI), PreAllocateENI: int32(c.PreAllocateENI), Multiple: int32(c.Multiple),
		Partial: c.Partial, ReturnENIs: c.ReturnENIs, MinAllocate: int32(c.MinAllocate), PreAllocate: int32(c.PreAllocate), MaxAboveWatermark: int32(c.MaxAboveWatermark)}
}

// modeText is the word for a mode, the same for spec and status.
func modeText(m order.Mode) crd.Mode { return crd.Mode(m.String()) }

// parseMode reads the mode of a status: nobody but the agent calls where there is none yet, and nobody at all where it is one
// of a later release.
func parseMode(m crd.Mode) order.Mode {
	for _, known := range []order.Mode{order.Self, order.Joining, order.Leaving, order.Operator} {
		if m == modeText(known) {
			return known
		}
	}
	if m == "" {
		return order.Self
	}
	return order.Joining
}

// limits and their opposite: nil is for those of an instance that is not known yet.
func readLimits(l *crd.Limits) eni.Limits {
	if l == nil {
		return eni.Limits{}
	}
	return eni.Limits{ENIs: int(l.Interfaces), V4: int(l.V4), V6: int(l.V6), V4Block: readBlock(l.V4Block), V6Block: readBlock(l.V6Block),
		NoPrimary: l.NoPrimary}
}

func toLimits(l eni.Limits) *crd.Limits {
	if l == (eni.Limits{}) {
		return nil
	}
	return &crd.Limits{Interfaces: int32(l.ENIs), V4: int32(l.V4), V6: int32(l.V6), V4Block: toBlock(l.V4Block), V6Block: toBlock(l.V6Block),
		NoPrimary: l.NoPrimary}
}

func readBlock(b *crd.Block) eni.Block {
	if b == nil {
		return eni.Block{}
	}
	return eni.Block{Bits: int(b.Bits), Size: int(b.Size)}
}

func toBlock(b eni.Block) *crd.Block {
	if b == (eni.Block{}) {
		return nil
	}
	return &crd.Block{Bits: int32(b.Bits), Size: int32(b.Size)}
}
