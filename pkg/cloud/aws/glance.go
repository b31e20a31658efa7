package aws

import (
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
)

// glance is what this process knows of the node's ENIs without asking. EC2 lets all
// nodes of an account describe ENIs twenty times a second: what is known is not asked
// for again before a change, which fails if it is wrong.
type glance struct {
	at     time.Time         // when the last Interfaces began
	tokens map[string]string // of the node's ENIs that were made for it, by ID
	taken  map[int]string    // device index: ID of the ENI
	begun  map[string]bool   // tokens of which this process has begun to make the ENI
	loose  bool              // an ENI of the node was attached nowhere

	sure time.Time // until then each Interfaces asks for ENIs that are attached nowhere
	next time.Time // from then on the next one does
}

const (
	recent   = 8 * time.Minute  // how old what is known may be: less than forgetAfter
	doubtful = 2 * time.Minute  // longer than an effect comes late, and any lag
	allEvery = 10 * time.Minute // about
)

// wantsAll tells whether an Interfaces that begins now asks for the ENIs of the node
// that are attached nowhere, too.
func (c *Client) wantsAll() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return c.known.loose || now.Before(c.known.sure) || !now.Before(c.known.next)
}

// misses tells whether an ENI that was made for the node is not attached to it, as far
// as this answer tells: then only its tag can tell what became of it.
func (c *Client) misses(here []types.NetworkInterface) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.known.tokens {
		if !shows(here, id) {
			return true
		}
	}
	return false
}

// glanced keeps what an Interfaces has shown. Nodes that began together do not ask for
// all of it together for ever.
func (c *Client) glanced(began time.Time, all bool, here []types.NetworkInterface, nics []nic) {
	for _, n := range nics {
		c.saw(n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &c.known
	k.at, k.tokens, k.taken, k.loose = began, map[string]string{}, map[int]string{}, false
	for _, n := range nics {
		if n.Ours {
			k.tokens[n.ID] = n.Token
			k.loose = k.loose || n.Index < 0
		}
	}
	for _, r := range here {
		if a := r.Attachment; a != nil && aws.ToInt32(a.NetworkCardIndex) == 0 {
			k.taken[int(aws.ToInt32(a.DeviceIndex))] = aws.ToString(r.NetworkInterfaceId)
		}
	}
	if !all {
		return
	}
	if k.next = k.sure; !began.Before(k.sure) {
		k.next = began.Add(allEvery*9/10 + rand.N(allEvery/5))
	}
}

// doubt notes that something may be attached nowhere, or may come to be: Interfaces
// asks for all for a while, and once when what is late has come.
func (c *Client) doubt(err error) {
	if err == nil || cloud.Kind(err) == cloud.ErrThrottled {
		return // nothing has happened
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.sure = c.now().Add(doubtful)
	c.known.next = c.known.sure
}

// isNew notes that the ENI of a token is to be made, and tells whether there is surely
// none that describes could show: an earlier process, too, would have been seen to make
// it or is found by EC2's client token.
func (c *Client) isNew(token string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := c.known.begun[token]
	if len(c.known.begun) >= mostBorn {
		clear(c.known.begun)
	}
	c.known.begun[token] = true
	for _, known := range c.known.tokens {
		begun = begun || known == token
	}
	return !begun && c.isRecent(c.known.at)
}

// unbegun notes that nothing has come of it.
func (c *Client) unbegun(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known.begun, token)
}

// isRecent tells whether what was seen then may be relied on. It is called locked.
func (c *Client) isRecent(t time.Time) bool { return !t.IsZero() && c.now().Sub(t) <= recent }

// placed notes that an ENI has come to a device index.
func (c *Client) placed(id string, index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.taken != nil {
		c.known.taken[index] = id
	}
}

// firstFree returns the lowest device index that is free as far as is known, 0 if that
// is not.
func (c *Client) firstFree(id string, enis int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isRecent(c.known.at) {
		return 0
	}
	for index := 1; index < enis; index++ {
		if at, taken := c.known.taken[index]; !taken || at == id {
			return index
		}
	}
	return 0
}

// asSeen returns an ENI as it was shown attached a short while ago, for a change that
// fails if it is not.
func (c *Client) asSeen(id string) (*nic, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, seen := c.seen[id]
	return &s.nic, seen && c.isRecent(s.at)
}
