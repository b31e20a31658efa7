package fastpath

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// Attach has the program see what comes in by the links, and takes that of
// another release off them. From a link by which others have programs or queues for what comes
// in it takes ours off, because what jumps does not come by theirs. Links that are gone are fine.
//
// Each change waits for all processors, ten milliseconds or so, and no link of the node can
// be changed meanwhile. So it adds and takes away no more than most programs, apart from
// those that others need gone. whole tells that nothing is left to do.
func (p *Path) Attach(devices []string, most int) (whole bool, err error) {
	old, err := p.otherReleases()
	if err != nil {
		return false, err
	}
	defer func() { _ = closePrograms(old) }()
	busy, err := readQueues()
	if err != nil {
		return false, err
	}
	links, err := linkIndices(devices)
	if err != nil {
		return false, err
	}
	var errs []error
	whole = true
	for _, index := range links {
		n, err := p.attach(index, busy[index], old, most > 0)
		if !errors.Is(err, unix.ENODEV) {
			errs = append(errs, err)
		}
		if n > 0 && most <= 0 {
			whole = false
			continue
		}
		most -= n
	}
	return whole, errors.Join(errs...)
}

// attach adds the program before it takes one off: no packet is seen by none. It
// returns how many it added and took off, or would have, had it been allowed to.
func (p *Path) attach(index int, busy bool, old map[ebpf.ProgramID]*ebpf.Program, allowed bool) (n int, err error) {
	have, err := attached(index)
	if err != nil {
		return 0, err
	}
	if busy || slices.ContainsFunc(have, func(id ebpf.ProgramID) bool { return id != p.id && old[id] == nil }) {
		for _, id := range have {
			if id == p.id {
				err = errors.Join(err, detach(index, p.program))
			} else if old[id] != nil {
				err = errors.Join(err, detach(index, old[id]))
			}
		}
		return 0, err
	}
	if !slices.Contains(have, p.id) {
		n++
		if allowed {
			err = bpf.AttachIngress(bpf.FD(p.program.FD()), index)
		}
	}
	for _, id := range have {
		if program := old[id]; program != nil {
			n++
			if allowed {
				err = errors.Join(err, detach(index, program))
			}
		}
	}
	return n, err
}

// attached returns the programs that see what comes in by the link.
func attached(index int) ([]ebpf.ProgramID, error) {
	have, err := bpf.IngressPrograms(index)
	ids := make([]ebpf.ProgramID, len(have))
	for i, id := range have {
		ids[i] = ebpf.ProgramID(id)
	}
	return ids, err
}

func detach(index int, program *ebpf.Program) error {
	err := link.RawDetachProgram(link.RawDetachProgramOptions{Target: index, Program: program, Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// Counters returns how many packets jumped.
func (p *Path) Counters() (c netconf.FastPathCounters, err error) {
	for i, sum := range []*uint64{counterOut: &c.Out, counterIn: &c.In, counterLocal: &c.Local} {
		var perCPU []uint64
		if err := p.maps.counters.Lookup(uint32(i), &perCPU); err != nil {
			return c, fmt.Errorf("read counters of the fast path: %w", err)
		}
		for _, n := range perCPU {
			*sum += n
		}
	}
	return c, nil
}
