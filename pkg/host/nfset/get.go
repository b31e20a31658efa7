package nfset

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Place is where a set may have an element: it has one for each key.
type Place struct {
	Set string
	Key []byte
}

// Get returns the element of the set that has the key. Found is false where the
// element, the set or the table is not there.
func (c *Conn) Get(set string, key []byte) (e Element, found bool, err error) {
	err = c.GetEach([]Place{{set, key}}, func(_ int, have Element, is bool) { e, found = have, is })
	return e, found, err
}

// getsAtOnce is how many elements are asked for in one datagram. The answers to them fit
// into what a socket may have without any right.
const getsAtOnce = 128

// GetEach hands to have what there is in each of the places, in their order, as Get would.
// Of thousands it asks for many at once.
func (c *Conn) GetEach(places []Place, have func(i int, e Element, found bool)) error {
	for start := 0; start < len(places); start += getsAtOnce {
		some := places[start:min(start+getsAtOnce, len(places))]
		gots, err := c.getAtOnce(some)
		if err != nil {
			return err
		}
		for i, g := range gots {
			have(start+i, g.Element, g.found)
		}
	}
	return nil
}

// got is what the kernel said of a place.
type got struct {
	Element
	found, answered bool
}

var errNoAnswer = errors.New("the kernel did not answer")

func (c *Conn) getAtOnce(places []Place) ([]got, error) {
	var m message
	for i, p := range places {
		// It is not to be acknowledged: the kernel answers, or says why it does not.
		c.appendElement(&m, unix.NFT_MSG_GETSETELEM, 0, uint32(i+1), p.Set, Element{Key: p.Key})
	}
	c.socket.makeRoom(len(m.bytes), len(places))
	replies, err := c.socket.exchange(m.bytes)
	if err != nil {
		return nil, fmt.Errorf("read elements of nftables set %s: %w", places[0].Set, err)
	}
	gots := make([]got, len(places))
	for _, r := range replies {
		i := int(r.Sequence) - 1
		if i < 0 || i >= len(places) {
			continue
		}
		gots[i].answered = true
		switch {
		case r.Errno() != 0 && r.Errno() != unix.ENOENT:
			return nil, readError(places[i], r.Errno())
		case r.Kind == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWSETELEM:
			gots[i].Element, gots[i].found = decodeElement(r.attributes())
		}
	}
	for i, g := range gots {
		if !g.answered {
			return nil, readError(places[i], errNoAnswer)
		}
	}
	return gots, nil
}

func readError(p Place, err error) error {
	return fmt.Errorf("read element %x of nftables set %s: %w", p.Key, p.Set, err)
}
