package operator

import (
	"slices"

	"github.com/enipool/enipool/pkg/order"
)

// withoutNeeded returns the view without those ENIs of topologies among what is to be deleted that are to carry an address by now, or that a call is
// about: their agent has published them as empty before it could know. It takes them back when it reads of the address.
func (in input) withoutNeeded(view order.View) order.View {
	if !in.keeps || len(view.Spec.ReleaseInterfaces) == 0 {
		return view // nearly always
	}
	view.Spec.ReleaseInterfaces = slices.DeleteFunc(slices.Clone(view.Spec.ReleaseInterfaces), func(id string) bool {
		ofTopology := slices.ContainsFunc(view.Status.ENIs, func(e order.ENI) bool { return e.ID == id && e.Topology != "" })
		return ofTopology && (in.orders.Promised[id] > 0 || in.facts.Calls[id].Busy)
	})
	return view
}
