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

func knownIsWhatWasShown(node *node) {
	node.eniWith(1)
	if diff := diffENIs(node.settledENIs(), node.Cloud.Known()); diff != "" {
		node.Errorf("Known is not what Interfaces has just shown (-Interfaces +Known):\n%s", diff)
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
		if i, shown := findIn(list, func(i cloud.Interface) bool { return i.ID == id }); shown {
			told[by] = &i
		}
	}
	return told
}

func shownAtOnce(node *node) {
	iface := node.eniWith(2)
	want := iface.Addresses
	check := func(call string) {
		node.Helper()
		for by, shown := range node.atOnce(iface.ID) {
			if shown == nil || !slices.Equal(shown.Addresses, want) {
				node.Errorf("after %s the ENI has %v, and %s shows %+v", call, want, by, shown)
			}
		}
	}
	node.settledENIs()
	want = union(want, node.assignUnits(iface.ID, 1)...)
	check("AssignAddresses")
	gone := node.splitUnits(want)[0]
	node.must(node.Cloud.UnassignAddresses(node.ctx, iface.ID, gone))
	want = withoutAddrs(want, gone...)
	check("UnassignAddresses")
}

func madeShownAtOnce(node *node) {
	node.settledENIs()
	i := node.createENI(1)
	for by, shown := range node.atOnce(i.ID) {
		if shown == nil || diffENIs([]cloud.Interface{i}, []cloud.Interface{*shown}) != "" {
			node.Errorf("CreateInterface has returned %+v, and %s shows %+v", i, by, shown)
		}
	}
	node.must(node.Cloud.DeleteInterface(node.ctx, i.ID))
	for by, shown := range node.atOnce(i.ID) {
		if shown != nil {
			node.Errorf("DeleteInterface has returned, and %s shows %+v", by, *shown)
		}
	}
}
