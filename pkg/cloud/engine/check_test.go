package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// rightsUntold is a cloud where callers have to be allowed, and that has no dry run.
type rightsUntold struct{ driver.Driver }

func (d rightsUntold) Traits() driver.Traits {
	t := d.Driver.Traits()
	t.Keys.Policy = "conf/policy.json"
	return t
}

// Who keeps the account's rate for all nodes has each request admitted, which changes nothing of
// what a driver can do: a check finds the same.
func TestACheckWhoseRequestsAreAdmittedFindsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		var found [2][]string
		for k, admit := range []func(context.Context, string) error{nil, func(context.Context, string) error { return nil }} {
			n := engine.New(rightsUntold{w.Driver("i-1", w.traits)}, engine.Options{Subnets: []string{"a"}, Admit: admit})
			for _, f := range n.Check(t.Context()) {
				found[k] = append(found[k], fmt.Sprint(f))
			}
		}
		if !slices.ContainsFunc(found[0], func(line string) bool { return strings.Contains(line, "no dry run") }) {
			t.Errorf("a check does not tell of permissions: %q", found[0])
		}
		if !slices.Equal(found[0], found[1]) {
			t.Errorf("a check finds %q, and where requests are admitted %q", found[0], found[1])
		}
	})
}
