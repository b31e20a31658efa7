package claims

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// The API server's store may be put back from a backup. Its claims have lower versions then than those that are known, and some are there again that had gone.
// A watch tells the same where it is late; what a read says that is not from a cache tells the two apart.

// Asked is what was known of a claim when its object was asked for.
type Asked struct {
	gone  int // how many had gone
	claim *crd.AddressClaim
}

// Ask returns what is known now.
func (k *Known) Ask(at netip.Addr) Asked { return Asked{k.gone, k.claims[at].object} }

// TakeRead takes in a claim as the API server itself has it, or as a write has left it. What is older than was known when it was asked for, or had gone by then, is
// of a store that was put back, and is what there is.
func (k *Known) TakeRead(c *crd.AddressClaim, asked Asked) error {
	if gone, is := k.ended[c.UID]; is && gone <= asked.gone {
		delete(k.ended, c.UID)
	}
	was := asked.claim
	if was == nil || was.UID != c.UID || !isNewer(was, c) {
		return k.takeClaim(c, false)
	}
	at, err := netip.ParseAddr(c.Spec.Address)
	if err != nil {
		return k.takeClaim(c, false)
	}
	known := k.claims[at]
	delete(k.claims, at)
	if err := k.takeClaim(c, false); err != nil {
		return err
	}
	// A call in one that may take effect yet is one of after the backup too.
	if is, there := k.claims[at]; there && is.ToENI == "" {
		is.ToENI = known.ToENI
		k.claims[at] = is
	}
	return nil
}

// TakeGone takes in that there was no object of an address when it was asked for. One that was made since is another one.
func (k *Known) TakeGone(at netip.Addr, asked Asked) error {
	is := k.claims[at].object
	if is == nil || asked.claim == nil || is.UID != asked.claim.UID {
		return nil
	}
	return k.takeClaim(is, true)
}

// IsBehind tells whether a copy that the watch tells of is older than what is known, or of a claim that has gone.
func (k *Known) IsBehind(c *crd.AddressClaim) bool {
	if _, gone := k.ended[c.UID]; gone {
		return true
	}
	at, err := netip.ParseAddr(c.Spec.Address)
	is := k.claims[at].object
	return err == nil && is != nil && is.UID == c.UID && isNewer(is, c)
}
