// Package firewall puts a netconf.Firewall into the kernel, as a table of
// nftables or as chains of iptables, and keeps it there. It works in the network
// namespace of the calling thread and touches nothing that is not ours.
package firewall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// step is a change to make: what it is, in lines for people, and how.
type step struct {
	says []string
	do   func() error
}

// Apply makes the kernel hold f and what is ours of the other packet filter go
// away. It returns a line for each change it made: none if nothing differed.
func Apply(ctx context.Context, f netconf.Firewall) ([]string, error) {
	steps, err := plan(ctx, f)
	if err != nil {
		return nil, err
	}
	return run(ctx, steps)
}

// Diff returns the lines that Apply would, and changes nothing.
func Diff(ctx context.Context, f netconf.Firewall) ([]string, error) {
	steps, err := plan(ctx, f)
	var says []string
	for _, s := range steps {
		says = append(says, s.says...)
	}
	return says, err
}

// Remove removes everything of ours from both packet filters, and returns a line for each
// thing.
func Remove(ctx context.Context) ([]string, error) {
	steps, err := removal(ctx)
	if err != nil {
		return nil, err
	}
	return run(ctx, steps)
}

// Found returns the lines that Remove would, and changes nothing.
func Found(ctx context.Context) (says []string, err error) {
	steps, err := removal(ctx)
	for _, s := range steps {
		says = append(says, s.says...)
	}
	return says, err
}

func removal(ctx context.Context) ([]step, error) {
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

// plan puts what is new before what goes, so that no packet meets neither.
func plan(ctx context.Context, f netconf.Firewall) ([]step, error) {
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

func run(ctx context.Context, steps []step) (did []string, err error) {
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return did, fmt.Errorf("%s: %w", strings.Join(s.says, ", "), err)
		}
		if err := s.do(); err != nil {
			return did, fmt.Errorf("%s: %w", strings.Join(s.says, ", "), err)
		}
		did = append(did, s.says...)
	}
	return did, nil
}

// missing tells whether err says that there is no such thing.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
