package ipam

import (
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// noLink begins the cause of an address that is held because its ENI has no link.
const noLink = "no link "

// NoLinkCause says that the link of an ENI is not on the node: it was detached, reset or
// removed by its driver. Nothing that a pod sends can leave by it.
func NoLinkCause(nic eni.Interface) string {
	return fmt.Sprintf("%s%s on this node: the link of the ENI %s is missing", noLink, nic.Device, nic.ID)
}

// IsNoLink tells whether the cause of a held address is that its ENI has no link: then
// nobody else has the address.
func IsNoLink(cause string) bool { return strings.HasPrefix(cause, noLink) }

// HeldText says in what stands behind a held address why no pod gets it.
func HeldText(cause string) string {
	switch {
	case cause == "":
		return "held by others: cause not recorded"
	case IsNoLink(cause):
		return "not usable: " + cause
	}
	return "held by others: " + cause
}

// countUnlinked returns how many of the addresses are held because their ENIs have no link, and
// the causes, one for each ENI.
func (s *State) countUnlinked(keep func(eni.Address) bool) (n int, causes []string) {
	last := ""
	for _, a := range s.Addresses {
		if a.State != eni.Held || !IsNoLink(a.HeldBy) || !keep(a) {
			continue
		}
		if n++; a.HeldBy != last { // those of an ENI stand together
			causes, last = append(causes, a.HeldBy), a.HeldBy
		}
	}
	return n, causes
}
