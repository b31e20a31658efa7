package bce

import (
	"math/rand/v2"
	"time"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
)

// recall tells which looks ask for the ENIs of ours that are attached nowhere, which
// takes a list of its own: lists are what this cloud lets pass least of.
type recall struct {
	looked time.Time // when the last look began
	sure   time.Time // until then each look asks for all
	next   time.Time // from then on the next one does
}

const (
	allEvery = 10 * time.Minute // about
	doubtful = 2 * time.Minute  // longer than an effect comes late, and any lag
	recent   = 8 * time.Minute  // as old as what is remembered may be for a new ENI
)

// all tells whether a look that begins now asks for all.
func (r recall) all(now time.Time) bool { return now.Before(r.sure) || !now.Before(r.next) }

// seenAll notes that a look has, which began at that time. Nodes that began together
// do not stay together.
func (r *recall) seenAll(began time.Time) {
	if r.next = r.sure; !began.Before(r.sure) {
		r.next = began.Add(allEvery*9/10 + rand.N(allEvery/5))
	}
}

// doubt notes that an ENI may have been left attached nowhere: some looks ask for all,
// and at least one after what is late has come.
func (c *Client) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recall.sure = time.Now().Add(doubtful)
	c.recall.next = c.recall.sure
}

// needsAll tells whether a look must ask for all: it is due, or an ENI of ours is not
// shown as attached, so that only the other list can tell what became of it.
func (c *Client) needsAll(here []sdk.Eni, now time.Time) bool {
	attached := map[string]bool{}
	for _, e := range here {
		attached[e.EniId] = e.Status == inUse
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.known {
		if r.ours && !attached[id] {
			return true
		}
	}
	return c.recall.all(now)
}

// recollect returns what is remembered of the instance, where that and the known ENIs
// are enough to make one with a token: it is recent, and nothing was ever begun with the token. What an
// earlier process began, the clientToken finds.
func (c *Client) recollect(token string) (view, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.making[token]
	if p.begun || p.generation > 0 || c.recall.looked.IsZero() || time.Since(c.recall.looked) > recent {
		return view{}, false
	}
	for _, r := range c.known {
		if r.ours && r.mark.token == token {
			return view{}, false
		}
	}
	return view{machine: c.last}, true
}
