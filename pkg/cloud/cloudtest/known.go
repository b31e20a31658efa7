package cloudtest

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

// known is what the comments of Known, and of what calls have done, say.
var known = []sentence{
	{"Known returns what the last Interfaces did", nil, knownIsWhatWasShown},
	{"what calls have done is shown at once, whatever describes lag", nil, shownAtOnce},
	{"an ENI that was made or deleted is shown so at once", []Capability{Secondary}, madeShownAtOnce},
}

func knownIsWhatWasShown(n *node) {
	n.carrier(1)
	if diff := diffENIs(n.see(), n.Cloud.Known()); diff != "" {
		n.Errorf("Known is not what Interfaces has just shown (-Interfaces +Known):\n%s", diff)
	}
}

// atOnce returns the ENI as Known and Interfaces tell it now, nil where one does not.
func (n *node) atOnce(id string) map[string]*cloud.Interface {
	n.Helper()
	without := n.Cloud.Known()
	asked, err := n.Cloud.Interfaces(n.ctx)
	n.must(err)
	told := map[string]*cloud.Interface{}
	for by, list := range map[string][]cloud.Interface{"Known": without, "Interfaces": asked} {
		told[by] = nil
		if i, shown := find(list, func(i cloud.Interface) bool { return i.ID == id }); shown {
			told[by] = &i
		}
	}
	return told
}

func shownAtOnce(n *node) {
	i := n.carrier(2)
	want := i.Addresses
	check := func(call string) {
		n.Helper()
		for by, shown := range n.atOnce(i.ID) {
			if shown == nil || !slices.Equal(shown.Addresses, want) {
				n.Errorf("after %s the ENI has %v, and %s shows %+v", call, want, by, shown)
			}
		}
	}
	n.see()
	want = with(want, n.assign(i.ID, 1)...)
	check("AssignAddresses")
	gone := n.units(want)[0]
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, gone))
	want = withoutAddrs(want, gone...)
	check("UnassignAddresses")
}

func madeShownAtOnce(n *node) {
	n.see()
	i := n.create(1)
	for by, shown := range n.atOnce(i.ID) {
		if shown == nil || diffENIs([]cloud.Interface{i}, []cloud.Interface{*shown}) != "" {
			n.Errorf("CreateInterface has returned %+v, and %s shows %+v", i, by, shown)
		}
	}
	n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
	for by, shown := range n.atOnce(i.ID) {
		if shown != nil {
			n.Errorf("DeleteInterface has returned, and %s shows %+v", by, *shown)
		}
	}
}
