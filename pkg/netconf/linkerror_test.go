package netconf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
)

func TestLinksAreToBlameOnlyIfNothingElseFailed(t *testing.T) {
	full := errors.New("no room")
	on := func(devs ...string) error { return &LinkError{Devs: devs, Err: full} }
	for _, tt := range []struct {
		err    error
		broken []string
		only   bool
	}{
		{nil, nil, true},
		{on("eth1"), []string{"eth1"}, true},
		{errors.Join(on("eth1", "eth3"), errors.Join(on("eth2"))), []string{"eth1", "eth2", "eth3"}, true},
		{errors.Join(on("eth1"), full), []string{"eth1"}, false},
		{fmt.Errorf("read: %w", on("eth1")), nil, false},
	} {
		broken, only := BrokenLinks(tt.err)
		if got := slices.Sorted(maps.Keys(broken)); !slices.Equal(got, tt.broken) || only != tt.only {
			t.Errorf("%v: %v, only %v", tt.err, got, only)
		}
	}
}
