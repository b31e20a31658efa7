package aws

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// memory is what calls of this process have done to addresses of ENIs a short while
// ago: describes may not show it yet.
type memory map[string]map[netip.Addr]deed

// deed is that an address was put, or taken, or may have been taken.
type deed struct {
	at    time.Time
	was   outcome
	block netip.Prefix // that it came in, if it did
}

type outcome uint8

const (
	put outcome = iota
	taken
	unsure
)

// forgetAfter is longer than EC2's describes lag, and than a node goes without a look.
const forgetAfter = 10 * time.Minute

// forget drops what is old of an ENI.
func (m memory) forget(id string, now time.Time) {
	maps.DeleteFunc(m[id], func(_ netip.Addr, d deed) bool { return now.Sub(d.at) > forgetAfter })
	if len(m[id]) == 0 {
		delete(m, id)
	}
}

// remember notes what a call has done to addresses of an ENI.
func (c *Client) remember(id string, addrs []netip.Addr, blocks []netip.Prefix, was outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory[id] == nil {
		c.memory[id] = map[netip.Addr]deed{}
	}
	for _, a := range addrs {
		d := deed{at: c.now(), was: was}
		if at := slices.IndexFunc(blocks, func(b netip.Prefix) bool { return b.Contains(a) }); at >= 0 {
			d.block = blocks[at]
		}
		c.memory[id][a] = d
	}
}

// sighting is an ENI as it was shown.
type sighting struct {
	nic
	at time.Time
}

// saw keeps an ENI that is attached in mind: another describe may show less.
func (c *Client) saw(n nic) {
	if n.Index < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[n.ID] = sighting{n, c.now()}
	maps.DeleteFunc(c.seen, func(_ string, s sighting) bool { return c.now().Sub(s.at) > forgetAfter })
}

// lastSeen returns an ENI as it was shown attached a short while ago.
func (c *Client) lastSeen(id string) (nic, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, seen := c.seen[id]
	return s.nic, seen && c.now().Sub(s.at) <= forgetAfter
}

// forgetENI: it is deleted.
func (c *Client) forgetENI(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, id)
	delete(c.first6, id)
	delete(c.seen, id)
	delete(c.known.tokens, id)
	maps.DeleteFunc(c.known.taken, func(_ int, at string) bool { return at == id })
}

// lately returns the addresses of an ENI to which this has happened a short while ago,
// and the blocks they came in.
func (c *Client) lately(id string, was outcome) (addrs []netip.Addr, blocks []netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory.forget(id, c.now())
	for a, d := range c.memory[id] {
		if d.was != was {
			continue
		}
		addrs = append(addrs, a)
		if d.block.IsValid() && !slices.Contains(blocks, d.block) {
			blocks = append(blocks, d.block)
		}
	}
	return union(addrs, nil), blocks
}

// truth returns what an ENI has: what a describe shows, corrected by what calls have
// done since.
func (c *Client) truth(on *nic) (addrs []netip.Addr, blocks []netip.Prefix) {
	more, fresh := c.lately(on.ID, put)
	gone, _ := c.lately(on.ID, taken)
	addrs = minus(union(on.Addresses, more), gone)
	return addrs, blocksWith(addrs, on.blocks, fresh)
}

// perhaps is truth with what the ENI may still have.
func (c *Client) perhaps(on *nic) (addrs []netip.Addr, blocks []netip.Prefix) {
	addrs, blocks = c.truth(on)
	more, old := c.lately(on.ID, unsure)
	addrs = union(addrs, more)
	return addrs, blocksWith(addrs, blocks, old)
}

// blocksWith returns each block once of which there are addresses.
func blocksWith(addrs []netip.Addr, lists ...[]netip.Prefix) (blocks []netip.Prefix) {
	for _, b := range slices.Concat(lists...) {
		if !slices.Contains(blocks, b) && len(within(b, addrs)) > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks
}
