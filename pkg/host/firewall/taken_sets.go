package firewall

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// mostChoices is how many endpoints of a service are followed, at most.
const mostChoices = 1000

// findInSet looks for the packet in a set, or for its verdict in a map. It asks the kernel for
// the one element: a map of all Services is large.
func (n *natPacket) findInSet(e *expr.Lookup) error {
	chance := n.chance
	n.chance = false
	n.out.byPort = true
	length, err := n.of.keyLength(e.SetName)
	if err != nil {
		return err
	}
	key := n.readKnown(e.SourceRegister, length)
	verdicts := e.IsDestRegSet && e.DestRegister == unix.NFT_REG_VERDICT
	switch {
	case key == nil && chance && verdicts:
		return n.chooseOf(e.SetName)
	case key == nil || length == 0:
		n.narrowMatch(mayMatch)
		if verdicts {
			n.view.action = decidesElsewhere
		} else if e.IsDestRegSet {
			n.load(e.DestRegister, nil)
		}
		return nil
	}
	found, data, err := n.of.readElement(e.SetName, key)
	if err != nil {
		return err
	}
	n.narrowMatch(matchIf(found != e.Invert))
	if !found || !e.IsDestRegSet {
		return nil
	}
	n.takeData(e, data)
	return nil
}

func (n *natPacket) takeData(e *expr.Lookup, data []byte) {
	for kind, value := range nlmsg.Attributes(data) {
		switch kind {
		case unix.NFTA_DATA_VALUE:
			n.load(e.DestRegister, value)
		case unix.NFTA_DATA_VERDICT:
			if v := decodeVerdict(value); v != nil {
				n.takeVerdict(v)
			}
		}
	}
}

// chooseOf notes the chains to all of which the map leads.
func (n *natPacket) chooseOf(set string) error {
	elements, err := n.of.readElements(set)
	if err != nil {
		return err
	}
	for _, data := range elements {
		for kind, value := range nlmsg.Attributes(data) {
			if v := decodeVerdict(value); kind == unix.NFTA_DATA_VERDICT && v != nil && v.Chain != "" {
				n.out.choice = append(n.out.choice, v.Chain)
			}
		}
	}
	if len(n.out.choice) == 0 || len(n.out.choice) != len(elements) || len(elements) > mostChoices {
		n.out.choice, n.view.action = nil, decidesElsewhere
	}
	return nil
}

// keyLength returns how long the keys of a set are.
func (n *nftNatRules) keyLength(set string) (length int, err error) {
	messages, err := askNft(n.raw, n.table, unix.NFT_MSG_GETSET, 0,
		netlink.Attribute{Type: unix.NFTA_SET_TABLE, Data: []byte(n.table.Name + "\x00")},
		netlink.Attribute{Type: unix.NFTA_SET_NAME, Data: []byte(set + "\x00")})
	if errors.Is(err, unix.ENOENT) {
		return 0, nil // gone with its rule since
	}
	if err != nil {
		return 0, fmt.Errorf("read set %s of nftables table %s: %w", set, n.table.Name, err)
	}
	for _, m := range messages {
		for kind, value := range nftAttributes(m) {
			if kind == unix.NFTA_SET_KEY_LEN && len(value) == 4 {
				length = int(binary.BigEndian.Uint32(value))
			}
		}
	}
	return length, nil
}

// readElement asks for one key, and returns what it leads to.
func (n *nftNatRules) readElement(set string, key []byte) (found bool, data []byte, err error) {
	value, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.NFTA_DATA_VALUE, Data: key}})
	if err == nil {
		value, err = netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.NLA_F_NESTED | unix.NFTA_SET_ELEM_KEY, Data: value}})
	}
	if err == nil {
		value, err = netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.NLA_F_NESTED | unix.NFTA_LIST_ELEM, Data: value}})
	}
	if err != nil {
		return false, nil, fmt.Errorf("ask for an element of set %s: %w", set, err)
	}
	messages, err := n.askElements(set, 0, netlink.Attribute{Type: unix.NLA_F_NESTED | unix.NFTA_SET_ELEM_LIST_ELEMENTS, Data: value})
	if errors.Is(err, unix.ENOENT) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("ask for an element of set %s of nftables table %s: %w", set, n.table.Name, err)
	}
	for _, m := range messages {
		for _, data := range elementData(m) {
			return true, data, nil
		}
	}
	return false, nil, nil
}

// readElements returns what all elements of a map lead to.
func (n *nftNatRules) readElements(set string) (list [][]byte, err error) {
	messages, err := n.askElements(set, netlink.Dump)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil // gone with its rule since
	}
	if err != nil {
		return nil, fmt.Errorf("list elements of map %s of nftables table %s: %w", set, n.table.Name, err)
	}
	for _, m := range messages {
		list = append(list, elementData(m)...)
	}
	return list, nil
}

func (n *nftNatRules) askElements(set string, flags netlink.HeaderFlags, more ...netlink.Attribute) ([][]byte, error) {
	return askNft(n.raw, n.table, unix.NFT_MSG_GETSETELEM, flags, append([]netlink.Attribute{
		{Type: unix.NFTA_SET_ELEM_LIST_TABLE, Data: []byte(n.table.Name + "\x00")},
		{Type: unix.NFTA_SET_ELEM_LIST_SET, Data: []byte(set + "\x00")}}, more...)...)
}

// elementData returns the data of each element of a message, nil of one of a set.
func elementData(message []byte) (list [][]byte) {
	for kind, body := range nftAttributes(message) {
		if kind != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			continue
		}
		for _, element := range nlmsg.Attributes(body) {
			var data []byte
			for kind, value := range nlmsg.Attributes(element) {
				if kind == unix.NFTA_SET_ELEM_DATA {
					data = value
				}
			}
			list = append(list, data)
		}
	}
	return list
}
