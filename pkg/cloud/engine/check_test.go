package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
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

// What to do goes by what failed: a policy helps against a refusal alone.
func TestACheckTellsAnAPIThatIsAwayFromAMissingPermission(t *testing.T) {
	for reason, want := range map[sim.Reason]string{sim.Unavailable: "does the node reach it", sim.Forbidden: "allow what conf/policy.json does"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
			w.FailNext(sim.ActSubnets, append(make([]sim.Fault, 1), slices.Repeat([]sim.Fault{{Err: &sim.Error{Reason: reason}}}, 20)...)...)
			found := engine.New(rightsUntold{w.Driver("i-1", w.traits)}, engine.Options{Subnets: []string{"a"}}).Check(t.Context())
			at := slices.IndexFunc(found, func(f cloud.Finding) bool { return f.What == "subnets" })
			if at < 0 || found[at].Verdict != cloud.Broken || !strings.Contains(found[at].Fix, want) {
				t.Errorf("%s: no subnets to be put right by %q in %+v", reason, want, found)
			}
		})
	}
}

// A check whose time is over does not know what it waited for, and says so.
func TestACheckThatHadNoTimeSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		found := engine.New(w.Driver("i-1", w.traits), engine.Options{}).Check(ctx)
		if len(found) != 1 || !strings.Contains(found[0].Fix, "a longer --timeout") {
			t.Errorf("%+v", found)
		}
	})
}
