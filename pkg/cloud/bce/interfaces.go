package bce

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/baidubce/bce-sdk-go/bce"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// The states of an ENI.
const (
	available = "available"
	attaching = "attaching"
	inUse     = "inuse"
	detaching = "detaching"
)

// nic is an ENI of the instance: what the cloud says of it and what that means.
type nic struct {
	sdk.Eni
	mark  mark
	ours  bool
	shown cloud.Interface
}

// view is all ENIs of the instance at one time, its own first, the others in the
// order of their creation.
type view struct {
	machine machine
	nics    []nic
}

// Interfaces returns every ENI that is attached to the instance, and those of ours
// that are not. One of which the cloud tells what can't be right is left out, see
// Quarantined.
func (c *Client) Interfaces(ctx context.Context) (list []cloud.Interface, err error) {
	defer plain(&err)
	v, err := c.look(ctx, "Interfaces")
	if err != nil {
		return nil, err
	}
	for _, n := range v.nics {
		list = append(list, n.shown)
	}
	return list, nil
}

// look asks for the instance with its own ENI, for the ENIs on it and, where that is
// needed, for those of ours, which may be nowhere, and remembers them.
func (c *Client) look(ctx context.Context, op string) (view, error) {
	began := time.Now()
	m, err := c.machine(ctx, op)
	if err != nil {
		return view{}, err
	}
	all, whole := []sdk.Eni{m.own}, true
	if m.kind != BBC {
		k := call{op: op, object: m.instance}
		here, err := c.list(ctx, k, sdk.ListEniArgs{VpcId: m.vpc, InstanceId: m.instance})
		if err != nil {
			return view{}, err
		}
		var ours []sdk.Eni
		if whole = c.needsAll(here, began); whole {
			if ours, err = c.list(ctx, k, sdk.ListEniArgs{VpcId: m.vpc, Name: nameOf(m.instance)}); err != nil {
				return view{}, err
			}
		}
		all = slices.Concat(all, here, ours)
	}
	v, wrong, err := c.understand(ctx, op, m, latest(all))
	if err != nil {
		return view{}, err
	}
	c.remember(v, wrong)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last, c.recall.looked = m, began; whole {
		c.recall.seenAll(began)
	}
	return v, nil
}

// latest leaves of each ENI what was answered last. The own one is never in a list
// of ENIs by what Baidu's own driver does; if it is, its first answer counts.
func latest(all []sdk.Eni) []sdk.Eni {
	at := map[string]int{}
	var list []sdk.Eni
	for _, e := range all {
		if i, ok := at[e.EniId]; ok {
			if i > 0 {
				list[i] = e
			}
			continue
		}
		at[e.EniId] = len(list)
		list = append(list, e)
	}
	return list
}

// list returns the ENIs that the arguments select. A page begins at an ENI: where that
// is deleted before it is asked for, the list is asked for anew.
func (c *Client) list(ctx context.Context, k call, by sdk.ListEniArgs) ([]sdk.Eni, error) {
	for try := 1; ; try++ {
		all, page, err := c.pages(ctx, k, by)
		if page == 0 || !isState(err) || try == 3 {
			return all, err
		}
	}
}

// pages returns what all pages of a list tell, or the page that failed.
func (c *Client) pages(ctx context.Context, k call, by sdk.ListEniArgs) (all []sdk.Eni, page int, err error) {
	for ; ; page++ {
		var a *sdk.ListEniResult
		if err := c.do(ctx, k, func(b *bce.BceClient) (err error) {
			a, err = (&sdk.Client{BceClient: b}).ListEni(&by)
			return err
		}); err != nil {
			return nil, page, err
		}
		all = append(all, a.Eni...)
		if !a.IsTruncated {
			return all, page, nil
		}
		if a.NextMarker == "" || a.NextMarker == by.Marker || page >= mostPages {
			return nil, page, c.badAnswer(k, "there is a next page and no way to it")
		}
		by.Marker = a.NextMarker
	}
}

// understand makes a view of answers.
func (c *Client) understand(ctx context.Context, op string, m machine, all []sdk.Eni) (view, []cloud.Quarantined, error) {
	v := view{machine: m}
	var wrong []cloud.Quarantined
	for i, e := range all {
		n := nic{Eni: e}
		if i > 0 {
			n.mark, n.ours = c.isOurs(m.self, e)
		}
		if !n.ours && (e.InstanceId != m.instance || e.Status != inUse) {
			continue // others' on their way to or from here, or not here at all
		}
		net, err := c.network(ctx, op, e.SubnetId)
		if err != nil && (i == 0 || !errors.Is(err, cloud.ErrNotFound)) {
			return view{}, nil, err
		}
		n.shown, err = show(n, m.self, net)
		switch {
		case err == nil:
			v.nics = append(v.nics, n)
		case i == 0:
			return view{}, nil, c.badAnswer(call{op: op, object: e.EniId}, err.Error())
		default:
			wrong = append(wrong, cloud.Quarantined{ID: e.EniId, Why: err.Error()})
		}
	}
	slices.SortStableFunc(v.nics[1:], byCreation)
	number(v.nics)
	v.nics, wrong = separate(v.nics, wrong)
	return v, wrong, nil
}

// isOurs tells whether CreateInterface made the ENI for this instance.
func (c *Client) isOurs(me self, e sdk.Eni) (mark, bool) {
	m, ok := parseMark(e.Description)
	return m, ok && m.instance == me.instance && m.cluster == c.o.Cluster
}

// byCreation orders by the cloud's time, which is in seconds, then by the node's.
func byCreation(a, b nic) int {
	return cmp.Or(a.shown.Created.Compare(b.shown.Created), a.mark.asked.Compare(b.mark.asked), cmp.Compare(a.EniId, b.EniId))
}

// number gives each attached ENI its device index. Those of ours have the one that
// was free when they were made, the older first; all others count down from the
// highest.
func number(nics []nic) {
	taken := map[int]bool{0: true}
	for i := range nics[1:] {
		n := &nics[i+1]
		if n.ours && !taken[n.mark.index] {
			taken[n.mark.index] = true
			n.shown.Index = n.mark.index
		} else {
			n.shown.Index = 0 // none yet
		}
	}
	high := eni.MaxIndex
	for i := range nics[1:] {
		n := &nics[i+1]
		for n.shown.Index == 0 {
			if !taken[high] {
				taken[high] = true
				n.shown.Index = high
			}
			high--
		}
	}
	for i := range nics[1:] {
		if n := &nics[i+1]; n.Status != inUse {
			n.shown.Index = -1
		}
	}
}

// record is what to remember of it.
func (n nic) record() record {
	return record{subnet: n.SubnetId, ours: n.ours, mark: n.mark, index: n.shown.Index, seen: time.Now()}
}

// remembered is how long an ENI counts as there that is not shown: longer than any
// lag.
const remembered = time.Minute

// remember keeps what the next calls need to know of the ENIs.
func (c *Client) remember(v view, wrong []cloud.Quarantined) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range v.nics {
		c.known[n.EniId] = n.record()
	}
	maps.DeleteFunc(c.known, func(_ string, r record) bool { return time.Since(r.seen) > remembered })
	for _, w := range wrong {
		if !slices.Contains(c.wrong, w) {
			c.o.Log.Warn("the cloud tells of an ENI what can't be right; it is left alone", "eni", w.ID, "reason", w.Why)
		}
	}
	c.wrong = wrong
}

// Quarantined implements cloud.Quarantiner.
func (c *Client) Quarantined() []cloud.Quarantined {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.wrong)
}

// parseTime reads the API's times: with a zone, or without, which may be a few hours
// off, but never makes an ENI older than it is.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05.999", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
