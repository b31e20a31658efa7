// Package firewall puts a netconf.Firewall into the kernel, as a table of
// nftables or as chains of iptables, and keeps it there. It works in the network
// namespace of the calling thread and touches nothing that is not ours.
package firewall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// step is a change to make: what it is, in lines for people, and how.
type step struct {
	says []string
	do   func() error
	effect
}

// effect is what of the filter a change concerns.
type effect struct {
	translates bool         // rules, chains or host ports by which packets are translated
	admits     []netip.Addr // that are translated
	redraws    bool         // what is inside the VPC
}

// Change is what Apply did.
type Change struct {
	Lines []string // for people; none if nothing differed
	// Translates tells whether rules, chains or host ports by which packets are translated
	// were put in place: the kernel goes on with what began without them.
	Translates bool
	// Admits are the addresses that were added to those that are translated: the pool
	// grew, or somebody had removed them.
	Admits []netip.Addr
	// Redraws tells whether other destinations are inside the VPC now: pods' packets to them
	// leave by another ENI.
	Redraws bool
}

// Apply makes the kernel hold f and what is ours of the other packet filter go
// away. After an error it returns what it did until then.
func Apply(ctx context.Context, f netconf.Firewall) (Change, error) {
	steps, err := planSteps(ctx, f)
	if err != nil {
		return Change{}, err
	}
	return runSteps(ctx, steps)
}

// Diff returns the lines that Apply would, and changes nothing.
func Diff(ctx context.Context, f netconf.Firewall) ([]string, error) {
	steps, err := planSteps(ctx, f)
	var says []string
	for _, s := range steps {
		says = append(says, s.says...)
	}
	return says, err
}

// Remove removes everything of ours from both packet filters, and returns a line for each
// thing.
func Remove(ctx context.Context) ([]string, error) {
	steps, err := planRemoval(ctx)
	if err != nil {
		return nil, err
	}
	did, err := runSteps(ctx, steps)
	return did.Lines, err
}

// Found returns the lines that Remove would, and changes nothing.
func Found(ctx context.Context) (says []string, err error) {
	steps, err := planRemoval(ctx)
	for _, s := range steps {
		says = append(says, s.says...)
	}
	return says, err
}

func planRemoval(ctx context.Context) ([]step, error) {
	steps, err := nftRemoval()
	if err != nil {
		return nil, err
	}
	more, err := iptRemoval(ctx, nil)
	return append(steps, more...), err
}

// Works returns nil if this node can do what the packet filter is asked for,
// else why not and what a person can do. Trying leaves nothing behind.
func Works(b ipam.Firewall) error {
	if b == ipam.Iptables {
		return iptWorks()
	}
	return nftWorks()
}

// planSteps puts what is new before what goes, so that no packet meets neither.
func planSteps(ctx context.Context, f netconf.Firewall) ([]step, error) {
	if f.Backend == ipam.Iptables {
		steps, err := iptPlan(ctx, f)
		if err != nil {
			return nil, err
		}
		more, err := nftRemoval()
		return append(steps, more...), err
	}
	steps, err := nftPlan(f)
	if err != nil {
		return nil, err
	}
	more, err := iptRemoval(ctx, nil)
	return append(steps, more...), err
}

func runSteps(ctx context.Context, steps []step) (did Change, err error) {
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return did, fmt.Errorf("%s: %w", strings.Join(s.says, ", "), err)
		}
		if err := s.do(); err != nil {
			return did, fmt.Errorf("%s: %w", strings.Join(s.says, ", "), err)
		}
		did.Lines = append(did.Lines, s.says...)
		did.Translates, did.Admits = did.Translates || s.translates, append(did.Admits, s.admits...)
		did.Redraws = did.Redraws || s.redraws
	}
	return did, nil
}

// isNotInstalled tells whether err says that there is no such thing.
func isNotInstalled(err error) bool { return errors.Is(err, fs.ErrNotExist) }
