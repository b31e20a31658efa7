package claims

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/topology"
)

// Left is where an address is that an ENI of this cluster has whose instance has no Node any more: the Node was deleted, and the instance lives on. No node of
// ours shows it then.
type Left struct{ ENI, Instance string }

// Taken is an address that is to be taken from such an ENI.
type Taken struct {
	Addr netip.Addr
	Left
}

// left is what is known of addresses that the cloud does not give since another ENI has them.
type left struct {
	at     map[netip.Addr]Left
	sought map[netip.Addr]bool // somebody is looking for it
}

// NoteSought takes in that the ENIs of the VPC are being read for one that has an address, or that this has ended.
func (k *Known) NoteSought(at netip.Addr, under bool) {
	if k.left.sought == nil {
		k.left.sought = map[netip.Addr]bool{}
	}
	k.markClaim(at)
	if k.left.sought[at] = under; !under {
		delete(k.left.sought, at)
	}
}

// NoteLeft takes in where an address is, the zero Left: on no such ENI any more.
func (k *Known) NoteLeft(at netip.Addr, on Left) {
	if k.left.at == nil {
		k.left.at = map[netip.Addr]Left{}
	}
	k.markClaim(at)
	if k.left.at[at] = on; on == (Left{}) {
		delete(k.left.at, at)
		delete(k.refused, at)
	}
}

// leftAt adds to what is known of an address, which no node has, the ENI that has it. Nobody there can say a word for it.
func (d *decision) leftAt(at netip.Addr, a topology.Attachment) topology.Attachment {
	if on, is := d.left.at[at]; is && a.Known {
		a.ENI, a.NodeGone = on.ENI, true
	}
	return a
}

// refusalOf returns when the cloud has refused an address, and why. While it is looked for, or an ENI of ours has it, it is nobody else's.
func (d *decision) refusalOf(at netip.Addr) refusal {
	if _, ours := d.left.at[at]; ours || d.left.sought[at] {
		return refusal{}
	}
	return d.refused[at]
}

// takeLeft has an address taken from an ENI of an instance without a Node, once a read says which pod of the name there is.
func (d *decision) takeLeft(claim topology.Claim, on Left) {
	if d.isRead(claim) {
		d.steps.Left = append(d.steps.Left, Taken{claim.Addr, on})
	}
}

// isRead tells whether the pod of a claim was read since its address is to be taken without its agent's word. Else it has it read.
func (d *decision) isRead(claim topology.Claim) bool {
	since, before := d.wanted[claim.Addr]
	if !before {
		since = d.now
		d.wanted[claim.Addr] = since
	}
	of := Name{claim.Namespace, claim.Pod}
	if read, is := d.read[of]; is && !read.Before(since) {
		return true
	}
	if !slices.Contains(d.steps.Reads, of) {
		d.steps.Reads = append(d.steps.Reads, of)
	}
	return false
}
