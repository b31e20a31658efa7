package hostport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
	"golang.org/x/sys/unix"
)

// nftTable is the table that holds the maps, see netconf.
func nftTable() nfset.Table {
	return nfset.Table{Family: unix.NFPROTO_INET, Name: netconf.NftPodsName}
}

// elementOf returns the member as the kernel keeps it.
func elementOf(m netconf.NftMember) nfset.Element {
	type concatenated interface{ Bytes() []byte }
	e := nfset.Element{Key: m.Element.Key.(concatenated).Bytes()}
	if value, ok := m.Element.Value.(concatenated); ok {
		e.Value = value.Bytes()
	}
	return e
}

// uniqueMembers returns each element once: a record may name a port twice, with all
// addresses of the node and without any.
func uniqueMembers(pods []netconf.PodPorts) []netconf.NftMember {
	var list []netconf.NftMember
	known := map[place]bool{}
	for _, p := range pods {
		for _, m := range p.Members() {
			if at := placeOf(m); !known[at] {
				known[at] = true
				list = append(list, m)
			}
		}
	}
	return list
}

// place is where an element is: a set has one for each key.
type place struct{ set, key string }

func placeOf(m netconf.NftMember) place { return place{m.Set, string(elementOf(m).Key)} }

// openNft adds the elements. No record has them, so one that is in the way is of a pod whose
// record is lost, or was left by something that did not keep to the order and leads to
// nobody's port. That one is replaced in the same transaction.
func (n Node) openNft(record podrecord.Record, pods []netconf.PodPorts) error {
	list := uniqueMembers(pods)
	changes := make([]nfset.Change, 0, len(list))
	for _, m := range list {
		op := nfset.AddNew
		// A hairpin is the pod's own address twice. No other pod can have it, so one that is
		// there already is as good.
		if m.Element.Value == nil {
			op = nfset.Add
		}
		changes = append(changes, nfset.Change{Op: op, Set: m.Set, Element: elementOf(m)})
	}
	err := nftTable().Commit(changes...)
	if errors.Is(err, unix.EEXIST) {
		err = n.openBeside(record, changes)
	}
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("open host ports: %w", ErrNotReady)
	}
	if err != nil {
		return fmt.Errorf("open host ports: %w", err)
	}
	return nil
}

// openBeside is openNft where something is in the way. What another network of the sandbox
// has stays there.
func (n Node) openBeside(record podrecord.Record, changes []nfset.Change) error {
	kept, err := readPorts(changes)
	if err != nil {
		return err
	}
	first, _, err := n.refuseKept(record, kept)
	if err != nil {
		return err
	}
	if len(first) > 0 {
		stays := map[place]bool{}
		for _, m := range uniqueMembers(first) {
			if m.Element.Value != nil { // a hairpin is no port that another network could have
				stays[placeOf(m)] = true
			}
		}
		changes = slices.DeleteFunc(changes, func(c nfset.Change) bool { return stays[place{c.Set, string(c.Element.Key)}] })
		if err := n.queueBehind(record); err != nil {
			return err
		}
	}
	return replaceStale(changes)
}

// readPorts returns the ports that the kernel has in the places of the changes.
func readPorts(changes []nfset.Change) (list []netconf.PodPorts, err error) {
	c, err := nftTable().Open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	places := make([]nfset.Place, len(changes))
	for i, change := range changes {
		places[i] = nfset.Place{Set: change.Set, Key: change.Element.Key}
	}
	err = c.GetEach(places, func(i int, have nfset.Element, found bool) {
		if p, ok := netconf.ParseNftPort(changes[i].Set, have.Key, have.Value); found && ok {
			list = append(list, p)
		}
	})
	return list, err
}

// readMembers hands to have what the kernel has in the place of each member.
func readMembers(c *nfset.Conn, list []netconf.NftMember, have func(m netconf.NftMember, want, is nfset.Element, found bool)) error {
	places, wanted := make([]nfset.Place, len(list)), make([]nfset.Element, len(list))
	for i, m := range list {
		wanted[i] = elementOf(m)
		places[i] = nfset.Place{Set: m.Set, Key: wanted[i].Key}
	}
	return c.GetEach(places, func(i int, is nfset.Element, found bool) { have(list[i], wanted[i], is, found) })
}

// replaceStale tries again without the elements that are in the way.
func replaceStale(changes []nfset.Change) error {
	var again []nfset.Change
	for _, c := range changes {
		c.Op = nfset.DeleteIfThere
		again = append(again, c)
	}
	return nftTable().Commit(append(again, changes...)...)
}

// closeNft deletes those of the elements that lead to the pod: a key may have
// become another pod's. In the same transaction the heirs get theirs.
func closeNft(conn *nfset.Conn, pods, heirs []netconf.PodPorts) error {
	var changes []nfset.Change
	free := map[place]bool{}
	err := readMembers(conn, uniqueMembers(pods), func(m netconf.NftMember, want, is nfset.Element, found bool) {
		leadsHere := found && is.Equal(want)
		if leadsHere {
			changes = append(changes, nfset.Change{Op: nfset.DeleteIfThere, Set: m.Set, Element: want})
		}
		if len(heirs) > 0 {
			free[placeOf(m)] = !found || leadsHere
		}
	})
	if noNftables(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("close host ports: %w", err)
	}
	for _, m := range uniqueMembers(heirs) {
		// What leads anywhere else is the agent's to put right: no DEL fails for it.
		if free[placeOf(m)] {
			changes = append(changes, nfset.Change{Op: nfset.Add, Set: m.Set, Element: elementOf(m)})
		}
	}
	err = conn.Commit(changes...)
	if len(heirs) > 0 && errors.Is(err, unix.ENOENT) {
		return closeNft(conn, pods, nil) // the agent makes the table again, with the heirs' ports
	}
	if err != nil {
		return fmt.Errorf("close host ports: %w", err)
	}
	return nil
}

// noNftables tells whether err says that this kernel has no nftables: then
// nothing of ours is there. EINVAL is also what it says to a key that does not fit the map.
func noNftables(err error) bool {
	if errors.Is(err, unix.EINVAL) {
		_, err = nftTable().HasChain("any")
		return errors.Is(err, unix.EINVAL)
	}
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

func checkNft(pods []netconf.PodPorts) (lines []string, err error) {
	c, err := nftTable().Open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	err = readMembers(c, uniqueMembers(pods), func(m netconf.NftMember, want, is nfset.Element, found bool) {
		switch {
		case !found:
			lines = append(lines, fmt.Sprintf("nftables map %s lacks %s", m.Set, strings.TrimSpace(m.Element.String())))
		case !is.Equal(want):
			lines = append(lines, fmt.Sprintf("nftables map %s leads %s elsewhere, want %s", m.Set, m.Element.Key, m.Element.Value))
		}
	})
	return lines, err
}
