package nodecache

import (
	"errors"
	"fmt"
)

// The ways in which a cache can be unusable. Nothing is handed out from such a
// cache; the agent, or `enipoolctl pool load`, rebuilds it from the cloud and
// the kernel.
var (
	// ErrMissing: there is no cache file.
	ErrMissing = errors.New("node cache is missing")
	// ErrDamaged: its head, size or an ENI's line can't be trusted.
	ErrDamaged = errors.New("node cache is damaged")
	// ErrVersion: a newer enipool wrote it and says that this one can't read it.
	ErrVersion = errors.New("node cache has a newer format")
	// ErrBoot: it was written before the last reboot, so its owners are gone.
	ErrBoot = errors.New("node cache is of another boot")
	// ErrOwnerTooLong: an owner's names don't fit the file's fixed lines.
	ErrOwnerTooLong = errors.New("owner does not fit a line of the node cache")
)

// DamageError is what is wrong with a cache that has to be built again, with who does it or what a
// person can do about it.
type DamageError struct {
	Path string
	Err  error // without the advice, which is not for who is about to do it
	Cure string
}

// Error says both.
func (e *DamageError) Error() string { return e.Path + ": " + e.Err.Error() + "; " + e.Cure }

// Unwrap returns what is wrong.
func (e *DamageError) Unwrap() error { return e.Err }

// DamagedRecord returns the error of a damaged record of the cache.
func (c Cache) DamagedRecord(reason string) error {
	return c.damage(fmt.Errorf("%w: %s", ErrDamaged, reason))
}

// damage says who builds a cache with that damage again: while an agent runs nobody else may, and it does so within seconds.
func (c Cache) damage(err error) *DamageError {
	cure := "start the agent, which rebuilds it"
	agent, running := c.Agent()
	if running {
		cure = agentName(agent) + " rebuilds it within seconds"
	}
	if errors.Is(err, ErrDamaged) { // after a reboot there are none
		cure += "; running pods are not touched"
	}
	if !running {
		cure += "; " + byHand
	}
	return &DamageError{c.Path, err, cure}
}

// Unusable tells whether err says that the cache itself must be rebuilt.
func Unusable(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) || errors.Is(err, ErrBoot)
}

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, a...))
}

// byHand stands last where it stands: on a node that is to have an agent it is no way out.
const byHand = "on a node without an agent: `enipoolctl pool load -f inventory.yaml`"

// missing says that there is no cache, and what the agent that would make it last said: most
// often that the cloud does not answer.
func (c Cache) missing() error {
	agent, running := c.Agent()
	why := c.Why()
	switch {
	case running && why == "":
		return fmt.Errorf("%w: %s; %s makes it", ErrMissing, c.Path, agentName(agent))
	case running:
		return fmt.Errorf("%w: %s; %s makes it and says: %s", ErrMissing, c.Path, agentName(agent), why)
	case why != "": // most often why it ended
		why = "it last said: " + why + "; "
	}
	return fmt.Errorf("%w: %s; no agent has made it, and %s; %s`enipool-agent --config FILE --dry-run` says what is wrong with its file; %s", ErrMissing, c.Path, agentAway(agent, running), why, byHand)
}
