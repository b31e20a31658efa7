package drivertest

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// changes is what the comments of Rewrite and SetGroups say.
var changes = []sentence{
	{"Rewrite replaces the mark of an ENI where MarksV6", []need{severalNICs, marksV6}, rewritesMark},
	{"Rewrite of an ENI that does not exist is ErrNotFound", []need{severalNICs, marksV6}, rewritesNothing},
	{"SetGroups replaces the security groups of an ENI", []need{hasGroups}, setsGroups},
	{"SetGroups of an ENI that does not exist is refused: NoSuchInterface", []need{hasGroups}, setsGroupsOfNothing},
}

func rewritesMark(account *account) {
	on := account.readyENI()
	m := on.Mark
	m.Token, m.Index = account.newMark().Token, m.Index+1
	if six := account.singlesOf(on.ID, eni.IPv6); len(six) > 0 {
		m.V6 = six[0]
	}
	account.must(account.Rewrite(account.ctx, on.ID, m, account.newMark().Token))
	now := account.settledENI(on.ID)
	if d := diffValues(m, now.Mark); d != "" {
		account.Errorf("the mark is not what was written (-written +shown):\n%s", d)
	}
	now.Mark = on.Mark
	account.unchangedBut(on, now)
}

func rewritesNothing(account *account) {
	account.checkKind(account.Rewrite(account.ctx, account.unknownID("eni"), account.newMark(), account.newMark().Token), cloud.ErrNotFound)
}

func setsGroups(account *account) {
	on := account.readyENI()
	account.must(account.SetGroups(account.ctx, on.ID, account.s.Groups, account.newMark().Token))
	now := account.settledENI(on.ID)
	if !slices.Equal(sortedText(now.Groups), sortedText(account.s.Groups)) {
		account.Errorf("the groups are %v, want %v", now.Groups, account.s.Groups)
	}
	account.must(account.SetGroups(account.ctx, on.ID, on.Groups, account.newMark().Token))
	account.unchangedBut(on, account.settledENI(on.ID))
}

func setsGroupsOfNothing(account *account) {
	account.checkReason(account.SetGroups(account.ctx, account.unknownID("eni"), account.s.Groups, account.newMark().Token), cloud.NoSuchInterface)
}
