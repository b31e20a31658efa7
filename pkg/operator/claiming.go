package operator

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/topology"
)

// claiming is what a term knows of the addresses of topologies. What becomes of them package claims decides; here it is done.
type claiming struct {
	known   *claims.Known
	orders  map[string]claims.Orders // by node
	changed bool                     // something that is decided by
	last    time.Duration            // when it was decided last
	next    time.Duration            // when to decide again though nothing changed
	countAt time.Duration            // when it is counted next
	flying  map[string]bool          // requests under way, by what they are about
	barred  map[string]barred
	setsAt  time.Duration // when StatefulSets may be listed next
	told    map[string]toldPod
	open    map[string]map[netip.Addr]bool // by node: what calls are about whose outcome is not in its object yet
	said    map[string]bool                // what the log has
	search  search
	prunes  bool                     // the API server keeps no moves in one call in claims
	noCross map[string]noCross       // why ENIs of a node carry no addresses of other subnets for a while, of "" those of all
	behind  map[string]time.Duration // claims of which the watch has told less than is known, and when they are read
}

// barred is until when what was refused is not tried again.
type barred struct{ until, pause time.Duration }

const (
	// decideEvery is how often it is decided at most, however much changes, and decideAgain how often at least.
	decideEvery = 200 * time.Millisecond
	decideAgain = 5 * time.Second
	// countEvery is how often it is counted how far topologies are used.
	countEvery = 5 * time.Second
	// setsEvery is how often StatefulSets are listed at most.
	setsEvery = 30 * time.Second
	// mostPods is of how many pods it is kept what they were told.
	mostPods = 10_000
)

// keptFirst and keptLast are how many addresses at the ends of a subnet the cloud gives to nobody. EC2 keeps the most.
const (
	keptFirst = 4
	keptLast  = 1
)

// newClaiming returns nil where there are no topologies, or where nothing may be changed.
func (o *Operator) newClaiming() *claiming {
	if o.o.Claims == nil || o.o.Observe {
		return nil
	}
	return &claiming{known: claims.New(o.o.Families, o.o.Lease.Settle), orders: map[string]claims.Orders{}, flying: map[string]bool{}, barred: map[string]barred{},
		told: map[string]toldPod{}, open: map[string]map[netip.Addr]bool{}, said: map[string]bool{}, noCross: map[string]noCross{}, behind: map[string]time.Duration{}}
}

// takeClaims takes in what the watch tells.
func (t *term) takeClaims(e claims.Event) {
	c := t.claiming
	c.changed = true
	if e.Claim != nil {
		t.noteBehind(e)
	}
	t.sayUnreadable(c.known.Take(e))
}

// sayUnreadable logs once what is wrong with an object.
func (t *term) sayUnreadable(err error) {
	if c := t.claiming; err != nil && !c.said[err.Error()] {
		c.said[err.Error()] = true
		t.o.Log.Warn("an object of topologies can't be read, and counts as little as it can", "error", err)
	}
}

// turnClaims decides what becomes of the addresses of topologies and begins that, and returns how long until it is to be decided again.
func (t *term) turnClaims() time.Duration {
	c := t.claiming
	if c == nil {
		return patience
	}
	now := t.now()
	due := c.next
	if c.changed {
		due = min(due, c.last+decideEvery)
	}
	if now.Mono < due {
		return due - now.Mono
	}
	c.changed, c.last, c.next = false, now.Mono, now.Mono+decideAgain
	subnets := t.topologySubnets()
	c.known.SetSubnets(subnets)
	for _, in := range subnets {
		s := t.subnets[in.ID]
		s.ofTopologies, s.topologiesSay = c.known.RangesIn(in)
		s.text = fmt.Sprint(s.ofTopologies)
	}
	t.endNoCross(now.Mono)
	c.known.SetMoves(t.movesFacts(now.Mono))
	steps, differ := c.known.DecideChanged(now.Wall, !t.looks.shown.IsZero() && t.looks.shown.Sub(t.lead.Acquired) >= t.o.Lease.Settle)
	if at := steps.Next; !at.IsZero() {
		c.next = min(c.next, now.Mono+at.Sub(now.Wall))
	}
	for _, name := range differ {
		o := steps.Nodes[name]
		if len(o.Move) > 0 || !reflect.DeepEqual(c.orders[name], o) { // what moves wait for may be of the nodes that have the addresses
			t.dirty[name] = true
		}
	}
	if at := c.known.DescribesAt(); at > 0 {
		t.describeForLate(at, now.Mono)
	}
	c.orders = steps.Nodes
	t.doSteps(steps)
	t.readBehind(now.Mono)
	t.askPlaces(now.Mono)
	if now.Mono >= c.countAt {
		c.countAt = now.Mono + countEvery
		counts := c.known.Counts()
		t.mu.Lock()
		t.counts = counts
		t.mu.Unlock()
	}
	return c.next - now.Mono
}

// topologySubnets returns the subnets as topologies go by them.
func (t *term) topologySubnets() (list []topology.Subnet) {
	for _, id := range slices.Sorted(maps.Keys(t.subnets)) {
		if s := t.subnets[id]; s.object != nil {
			is, err := s.object.ForTopologies(keptFirst, keptLast)
			if is.Zone = t.zoneName(is.Zone); err != nil {
				is.Ready = false
			}
			list = append(list, is)
		}
	}
	return list
}

// doSteps begins what was decided, beside the loop.
func (t *term) doSteps(steps claims.Steps) {
	objects, known := t.o.Claims, t.claiming.known
	for _, w := range steps.Writes {
		t.writeClaim(w)
	}
	for _, claim := range steps.Creates {
		t.createClaim(claim)
	}
	for _, at := range steps.Deletes {
		is := known.Object(at)
		t.request("claim "+is.Name, is.Name, func(ctx context.Context) (*crd.AddressClaim, error) { return nil, objects.DeleteClaim(ctx, is) }, nil)
	}
	for _, at := range steps.Forgets {
		is := known.Object(at)
		t.request("claim "+is.Name, is.Name, func(ctx context.Context) (*crd.AddressClaim, error) { return nil, objects.DropClaim(ctx, is) }, nil)
	}
	for _, of := range steps.Reads {
		t.readPod(of)
	}
	t.takeLeft(steps.Left)
	if now := t.now().Mono; steps.Sets && now >= t.claiming.setsAt {
		t.claiming.setsAt = now + setsEvery
		t.readSets()
	}
	t.tellWaiting(steps.Waits)
}

// createClaim makes the object of a claim: before the cloud is asked, so that the address is nobody else's.
func (t *term) createClaim(claim topology.Claim) {
	object, err := crd.NewAddressClaim(claim)
	if err != nil {
		return // an Elastic one has none
	}
	object.Finalizers = []string{claims.Finalizer}
	begun := t.request("claim "+object.Name, object.Name, func(ctx context.Context) (*crd.AddressClaim, error) { return t.o.Claims.CreateClaim(ctx, object) },
		func(t *term) { t.claiming.known.NoteCreating(claim, false) })
	if begun {
		t.claiming.known.NoteCreating(claim, true)
	}
}

// request makes a request about a claim beside the loop, unless one is under way or was refused a moment ago, and tells whether it has begun.
// What is there afterwards counts: after any error the object is read.
func (t *term) request(key, name string, do func(context.Context) (*crd.AddressClaim, error), after func(*term)) bool {
	c := t.claiming
	if c.flying[key] || c.barred[key].until > t.now().Mono {
		return false
	}
	c.flying[key] = true
	var asked claims.Asked
	if at, err := addrOf(name); err == nil {
		asked = c.known.Ask(at)
	}
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		is, err := do(ctx)
		if is == nil || err != nil {
			again, cancel := context.WithTimeout(t.ctx, writeLimit)
			defer cancel()
			var wrong error
			if is, wrong = t.o.Claims.ReadClaim(again, name); wrong != nil && !errors.Is(wrong, ErrGone) {
				err, is = cmp.Or(err, wrong), nil
			} else if wrong != nil {
				is, err = nil, ErrGone
			}
		}
		t.post(func(t *term) { t.endRequest(key, name, answer{is, asked, err}, after) })
	})
	return true
}

// answer is what a request about a claim has brought.
type answer struct {
	is    *crd.AddressClaim
	asked claims.Asked // what was known before
	err   error
}

// endRequest takes it in.
func (t *term) endRequest(key, name string, of answer, after func(*term)) {
	c, now, err := t.claiming, t.now().Mono, of.err
	delete(c.flying, key)
	if after != nil {
		after(t)
	}
	if c.changed = true; of.is != nil {
		t.sayUnreadable(c.known.TakeRead(of.is, of.asked))
	}
	switch {
	case err == nil:
		delete(c.barred, key)
		return
	case errors.Is(err, ErrGone):
		if at, wrong := addrOf(name); wrong == nil {
			t.sayUnreadable(c.known.TakeGone(at, of.asked))
		}
		return
	case errors.Is(err, ErrConflict):
		t.o.Meter.Conflicted()
		return
	}
	pause := min(longestPause, max(apart, 2*c.barred[key].pause))
	c.barred[key] = barred{now + pause, pause}
	c.next = min(c.next, now+pause)
	t.sayOnce("claims can't be written; it is tried again, and pods wait", err)
}

// sayOnce logs an error that all of a kind have once.
func (t *term) sayOnce(words string, err error) {
	if key := words + err.Error(); !t.claiming.said[key] && t.ctx.Err() == nil && len(t.claiming.said) < mostPods {
		t.claiming.said[key] = true
		t.o.Log.Warn(words, "error", err)
	}
}

// addrOf returns the address that a claim's object is called after.
func addrOf(name string) (netip.Addr, error) {
	if at, err := netip.ParseAddr(name); err == nil {
		return at, nil
	}
	digits, err := hex.DecodeString(name)
	if err != nil || len(digits) != 16 {
		return netip.Addr{}, fmt.Errorf("%q is no address", name)
	}
	return netip.AddrFrom16([16]byte(digits)), nil
}

// claimsDue returns how long until it is to be decided again, by what has changed since.
func (t *term) claimsDue() time.Duration {
	c := t.claiming
	switch {
	case c == nil:
		return patience
	case c.changed:
		return max(0, min(c.next, c.last+decideEvery)-t.now().Mono)
	}
	return max(0, c.next-t.now().Mono)
}

// orderedFor returns what a node's next status follows from besides the node.
func (t *term) orderedFor(node *member) ordered {
	in := ordered{observe: t.o.Observe}
	if c := t.claiming; c != nil {
		in.orders, in.decided = c.orders[node.network.Name]
		in.keeps, in.crosses = true, t.o.Region.Does().CrossSubnet
		in.claimed, in.whose = c.known.Claimed, t.topologyIn
	}
	return in
}

// topologyIn returns the first topology that has a subnet for itself, "" where all may have ENIs in it.
func (t *term) topologyIn(subnet string) string {
	if s := t.subnets[subnet]; s == nil || s.object == nil || s.object.Spec.Use != string(placement.Exclusive) {
		return ""
	}
	return t.claiming.known.TopologyIn(subnet)
}
