package operator

import "github.com/enipool/enipool/pkg/kube/crd"

// The most of a handover that is taken in, as the object's schema has it: an object may be older than that.
const (
	mostTokens   = 16
	mostReleases = 1024
	mostENIs     = 64
)

// handoverOf returns what an agent hands over, nothing where it does not.
func handoverOf(n *crd.NodeNetwork) crd.Handover {
	h := n.Spec.Handover
	if h == nil {
		return crd.Handover{}
	}
	return crd.Handover{Tokens: h.Tokens[:min(len(h.Tokens), mostTokens)], Release: h.Release[:min(len(h.Release), mostReleases)],
		ReleaseInterfaces: h.ReleaseInterfaces[:min(len(h.ReleaseInterfaces), mostENIs)]}
}
