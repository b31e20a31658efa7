package nfset

import (
	"fmt"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// listTries is how often a list is asked for while others change the table.
const listTries = 100

// List returns all elements of the set, none where the set or the table is not there.
func (t Table) List(set string) ([]Element, error) {
	c, err := t.Open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for range listTries {
		list, whole, err := c.listOnce(set)
		if err != nil {
			return nil, fmt.Errorf("list nftables set %s: %w", set, err)
		}
		if whole {
			return list, nil
		}
	}
	return nil, fmt.Errorf("list nftables set %s: it changes all the time", set)
}

// listOnce asks once; whole is false where somebody changed the table meanwhile.
func (c *Conn) listOnce(set string) (list []Element, whole bool, err error) {
	var m message
	start := m.beginMessage(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP, 1, c.Family, 0)
	m.appendText(unix.NFTA_SET_ELEM_LIST_TABLE, c.Name)
	m.appendText(unix.NFTA_SET_ELEM_LIST_SET, set)
	m.endMessage(start)
	replies, err := c.socket.exchange(m.bytes)
	if err != nil {
		return nil, false, err
	}
	return decodeList(replies)
}

// decodeList reads the elements of a list.
func decodeList(replies []reply) (list []Element, whole bool, err error) {
	for i, r := range replies {
		switch {
		// What is listed in several datagrams may be of two states of the table: an element
		// can be missing from it, or be there twice. Where the set was replaced in between, the
		// list ends in ENOENT behind its first elements, and the new set has others.
		case r.IsTorn() || r.Errno() == unix.EINTR || r.Errno() == unix.ENOENT && i > 0:
			return nil, false, nil
		case r.Errno() == unix.ENOENT:
			return nil, true, nil
		case r.Errno() != 0:
			return nil, false, r.Errno()
		}
		for item := range splitItems(nlmsg.Attribute(r.attributes(), unix.NFTA_SET_ELEM_LIST_ELEMENTS)) {
			if e, ok := decodeItem(item); ok {
				list = append(list, e)
			}
		}
	}
	return list, true, nil
}
