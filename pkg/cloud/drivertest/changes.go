package drivertest

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// changes is what the comments of Rewrite and SetGroups say.
var changes = []sentence{
	{"Rewrite replaces the mark of an ENI where MarksV6", []need{severalNICs, marks}, rewrites},
	{"Rewrite of an ENI that does not exist is ErrNotFound", []need{severalNICs, marks}, rewritesNothing},
	{"SetGroups replaces the security groups of an ENI", []need{hasGroups}, setsGroups},
	{"SetGroups of an ENI that does not exist is refused: NoSuchInterface", []need{hasGroups}, setsGroupsOfNothing},
}

func rewrites(a *account) {
	on := a.ready()
	m := on.Mark
	m.Token, m.Index = a.mark().Token, m.Index+1
	if six := a.addresses(on.ID, eni.IPv6); len(six) > 0 {
		m.V6 = six[0]
	}
	a.must(a.Rewrite(a.ctx, on.ID, m, a.mark().Token))
	now := a.one(on.ID)
	if d := diffValues(m, now.Mark); d != "" {
		a.Errorf("the mark is not what was written (-written +shown):\n%s", d)
	}
	now.Mark = on.Mark
	a.unchangedBut(on, now)
}

func rewritesNothing(a *account) {
	a.is(a.Rewrite(a.ctx, a.nobody("eni"), a.mark(), a.mark().Token), cloud.ErrNotFound)
}

func setsGroups(a *account) {
	on := a.ready()
	a.must(a.SetGroups(a.ctx, on.ID, a.s.Groups, a.mark().Token))
	now := a.one(on.ID)
	if !slices.Equal(sortedText(now.Groups), sortedText(a.s.Groups)) {
		a.Errorf("the groups are %v, want %v", now.Groups, a.s.Groups)
	}
	a.must(a.SetGroups(a.ctx, on.ID, on.Groups, a.mark().Token))
	a.unchangedBut(on, a.one(on.ID))
}

func setsGroupsOfNothing(a *account) {
	a.because(a.SetGroups(a.ctx, a.nobody("eni"), a.s.Groups, a.mark().Token), driver.NoSuchInterface)
}
