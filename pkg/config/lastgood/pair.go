package lastgood

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Pair is where an agent keeps a text: in the file that outlasts a reboot, or beside its own file
// while that one can't be written. Both may be the same.
type Pair struct{ Durable, Beside File }

// PairFor returns the files for an agent with that file of its own.
func PairFor(state, of string) Pair { return Pair{Durable(state, of), Beside(state, of)} }

// ByAge returns the files that are there to be read, the newest first: one lies beside the agent's own only
// where the durable one could not be written.
func (p Pair) ByAge() []File { return slices.Compact([]File{p.Beside, p.Durable}) }

// Keep keeps the text, and returns where. volatile says why it is kept until a reboot only, nil
// where it outlasts one; err says why it is not kept at all.
func (p Pair) Keep(text []byte) (at File, volatile, err error) {
	if p.Durable == p.Beside {
		return p.Durable, nil, p.Durable.Keep(text)
	}
	beside, volatile, err := keepIn(p.Durable, p.Beside, text)
	if beside {
		return p.Beside, volatile, err
	}
	return p.Durable, volatile, err
}

// place is a File, or one that a test stops at.
type place interface {
	Keep(text []byte) error
	lies() bool
	Remove()
}

// keepIn keeps the text in one of two places, of which beside is read first. So a file that is there
// already is written before the durable one: otherwise an agent that is killed between the two
// would start with the older text.
func keepIn(durable, beside place, text []byte) (isBeside bool, volatile, err error) {
	var first error
	lay := beside.lies()
	if lay {
		first = beside.Keep(text)
	}
	if volatile = durable.Keep(text); volatile == nil {
		beside.Remove()
		return false, nil, nil
	}
	if !lay {
		first = beside.Keep(text)
	}
	if first != nil {
		return true, nil, fmt.Errorf("%w; %w", volatile, first)
	}
	return true, volatile, nil
}

// lies tells whether there may be a file.
func (f File) lies() bool {
	_, err := os.Lstat(f.Path)
	return !errors.Is(err, fs.ErrNotExist)
}
