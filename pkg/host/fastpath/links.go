package fastpath

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// Attach has the program see what comes in by the links, and takes that of
// another release off them. Links on which others look at what comes in are left
// to them, and so are those that are gone.
func (p *Path) Attach(devices []string) error {
	old, err := p.otherReleases()
	if err != nil {
		return err
	}
	defer func() {
		for _, o := range old {
			o.Close()
		}
	}()
	busy, err := busyLinks()
	if err != nil {
		return err
	}
	var errs []error
	for _, dev := range devices {
		l, err := net.InterfaceByName(dev)
		if err != nil {
			continue
		}
		if err := p.attach(l.Index, busy[l.Index], old); !errors.Is(err, unix.ENODEV) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// attach adds the program before it takes one off: no packet is seen by none.
func (p *Path) attach(index int, busy bool, old map[ebpf.ProgramID]*ebpf.Program) error {
	have, err := attached(index)
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(have, func(id ebpf.ProgramID) bool { return id != p.id && old[id] == nil })
	mine := slices.Contains(have, p.id)
	switch {
	case (busy || others) && mine:
		err = detach(index, p.program)
	case !busy && !others && !mine:
		err = bpf.AttachIngress(bpf.FD(p.program.FD()), index)
	}
	for _, id := range have {
		if program := old[id]; program != nil {
			err = errors.Join(err, detach(index, program))
		}
	}
	return err
}

// attached returns the programs that see what comes in by the link.
func attached(index int) ([]ebpf.ProgramID, error) {
	res, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return nil, fmt.Errorf("list programs of link %d: %w", index, err)
	}
	var ids []ebpf.ProgramID
	for _, at := range res.Programs {
		ids = append(ids, at.ID)
	}
	return ids, nil
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
