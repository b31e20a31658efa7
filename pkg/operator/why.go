package operator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition is one as objects have it.
type condition = metav1.Condition

// Why is what an operator knows of one node.
type Why struct {
	Node     string `json:"node"`
	Epoch    int64  `json:"epoch"`
	Instance string `json:"instance,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Mode     string `json:"mode,omitempty"` // "" if there is no NodeNetwork
	Asked    string `json:"asked,omitempty"`

	Wanted
	Class  string     `json:"class,omitempty"` // of what it lacks
	Since  *time.Time `json:"since,omitempty"` // that it lacks it
	Queue  []Queued   `json:"queue,omitempty"`
	Calls  []Call     `json:"calls,omitempty"` // under way
	Causes []Told     `json:"causes,omitempty"`
	Next   *time.Time `json:"next,omitempty"` // when it is looked at next though nothing happens
	Cloud  *InCloud   `json:"cloud,omitempty"`
	Wrong  string     `json:"wrong,omitempty"`  // why nothing is done for it
	Awaits string     `json:"awaits,omitempty"` // what the change of who calls waits for

	Unknown bool `json:"unknown,omitempty"` // the cluster has no such node
}

// Wanted is what a node asks for and has, in slots and addresses.
type Wanted struct {
	Want        int `json:"want"`
	Have        int `json:"have"`
	Waiting     int `json:"waiting"`
	ENIs        int `json:"enis"`
	Releasing   int `json:"releasing,omitempty"` // accepted, and not gone yet
	Quarantined int `json:"quarantined,omitempty"`
	Reclaim     int `json:"reclaim,omitempty"` // idle slots that it is asked for
}

// Queued is a call that waits for a token.
type Queued struct {
	Action   string    `json:"action"`
	Object   string    `json:"object,omitempty"`
	Class    string    `json:"class"`
	Before   int       `json:"before"`   // calls that go before it
	Expected time.Time `json:"expected"` // if no others come in between and the cloud refuses nothing
}

// Call is one under way.
type Call struct {
	What   string    `json:"what"`
	Object string    `json:"object,omitempty"`
	Subnet string    `json:"subnet,omitempty"`
	Since  time.Time `json:"since"`
}

// Told is a cause, for people.
type Told struct {
	Reason  string     `json:"reason"`
	Message string     `json:"message,omitempty"`
	Next    *time.Time `json:"next,omitempty"` // when that is tried again
}

// InCloud is what the last describe has shown.
type InCloud struct {
	At        time.Time `json:"at"`
	ENIs      int       `json:"enis"`      // attached, the primary one among them
	Others    int       `json:"others"`    // attached ENIs that are not enipool's
	Addresses int       `json:"addresses"` // secondary ones
	Loose     int       `json:"loose"`     // ENIs made for it that are attached nowhere
	Limits    string    `json:"limits,omitempty"`
	Subnets   []string  `json:"subnets,omitempty"` // that a new ENI may lie in, in the order of choice
	Error     string    `json:"error,omitempty"`

	OtherCluster string `json:"otherCluster,omitempty"` // the name that most of its ENIs are tagged with, where that is not the cluster's
}

// Why returns what this operator knows of a node. ErrNotLeading: it knows nothing.
func (o *Operator) Why(ctx context.Context, node string) (Why, error) {
	return askLoop(ctx, o, func(t *term) Why { return t.why(node) })
}

// All returns what this operator knows of all nodes, without their places in the queue.
func (o *Operator) All(ctx context.Context) ([]Why, error) {
	return askLoop(ctx, o, func(t *term) (list []Why) {
		all := t.allPlacements()
		names := map[string]bool{}
		for name := range t.nodes {
			names[name] = true
		}
		for name := range t.members {
			names[name] = true // an object may outlive its Node
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			list = append(list, t.brief(name, all))
		}
		return list
	})
}

func (t *term) why(name string) Why {
	w := t.brief(name, t.allPlacements())
	m := t.members[name]
	if m == nil || m.network == nil || m.wrong != nil {
		return w
	}
	now := t.now()
	w.Queue = t.o.Gate.placesOf(name)
	for _, j := range m.jobs {
		w.Calls = append(w.Calls, Call{j.Do.String(), j.ENI, j.Subnet, *wallOf(now, max(j.began, 1))})
	}
	slices.SortFunc(w.Calls, func(a, b Call) int { return a.Since.Compare(b.Since) })
	w.Causes = nil
	for _, c := range t.inputOf(m, now).allCauses(m.view) {
		told := Told{Reason: string(order.ReasonOf(c.Kind)), Message: c.Words}
		if c.Next > now.Mono {
			told.Next = wallOf(now, c.Next)
		}
		w.Causes = append(w.Causes, told)
	}
	return w
}

// wallOf returns what time it is then, nil for 0.
func wallOf(now order.Moment, at time.Duration) *time.Time {
	if at == 0 {
		return nil
	}
	when := now.Wall.Add(at - now.Mono).Truncate(time.Second)
	return &when
}

// Stated returns what an object tells of its node: of a node whose operator is away it is all that is known.
func Stated(n *crd.NodeNetwork) Why {
	spec, status := n.Spec, n.Status
	w := Why{Node: n.Name, Epoch: status.Epoch, Instance: status.Instance, Zone: status.Zone, Mode: string(modeOf(n)), Asked: string(spec.Mode),
		Wanted: Wanted{int(spec.Slots), int(status.Slots), int(spec.Waiting), int(status.Interfaces), len(status.Releasing), len(status.Quarantined), int(status.Reclaim)}}
	if mode := modeOf(n); mode == crd.Joining || mode == crd.Leaving {
		w.Awaits = reasonOfNode(status).Message
	}
	for _, c := range status.Causes {
		told := Told{Reason: c.Reason, Message: c.Message}
		if c.Until != nil {
			told.Next = &c.Until.Time
		}
		w.Causes = append(w.Causes, told)
	}
	return w
}

// brief returns of a node what is known without much work.
func (t *term) brief(name string, all []placement.Subnet) (w Why) {
	m := t.members[name]
	of, isNode := t.nodes[name]
	if m == nil || m.network == nil {
		w = Why{Node: name, Epoch: t.epoch, Instance: of.Instance, Zone: of.Zone, Unknown: !isNode}
		if guest := t.guests[name]; guest != nil {
			w.Cloud = t.inCloud(guest, all)
		}
		return w
	}
	now := t.now()
	w = Stated(m.network)
	w.Epoch, w.Instance, w.Zone = t.epoch, m.node.Instance, m.node.Zone
	if m.due > now.Mono {
		w.Next = wallOf(now, m.due)
	}
	switch {
	case m.wrong != nil:
		w.Wrong = m.wrong.Error()
		return w
	case m.barred > now.Mono:
		w.Wrong = "its status can't be written: " + m.said
	case t.o.Observe && (w.Mode != string(crd.Self) || w.Asked == string(crd.Operator)):
		w.Wrong = "the operator only observes: remove observe from operator.yaml"
	case m.node.Cut && w.Mode == string(crd.Operator):
		w.Wrong = "there is no such Node, or the cluster does not reach it (taint node.kubernetes.io/unreachable or out-of-service): it gets no more until that changes"
	}
	if w.Mode == string(crd.Operator) && (w.Waiting > 0 || w.Have < w.Want) {
		class, since := m.classOf(m.view, now)
		w.Class, w.Since = class.String(), wallOf(now, cmp.Or(since, 1)) // 0 is nobody's time
		if w.Next == nil {
			w.Next = wallOf(now, max(t.looks.all, t.looks.whole.until)) // the next describe may show more room
		}
	}
	w.Cloud = t.inCloud(m, all)
	return w
}

// inCloud returns what the last describe has shown of a node, nil if there was none.
func (t *term) inCloud(m *member, all []placement.Subnet) *InCloud {
	if m.shown == nil {
		return nil
	}
	c := &InCloud{At: m.shown.began.Wall.Truncate(time.Second), Others: m.shown.countOthers(m.view.Status), Loose: len(m.shown.looseENIs())}
	if m.shown.view.Err != nil {
		c.Error = m.shown.view.Err.Error()
	}
	for _, nic := range m.shown.view.Interfaces {
		if nic.Index >= 0 {
			c.ENIs++
		}
		if nic.Index >= 0 && carries(nic) {
			c.Addresses += len(nic.Addresses)
		}
	}
	if t.o.Cluster != "" {
		c.OtherCluster = namesOf(m.shown).other(t.o.Cluster)
	}
	c.Limits = limitsText(m.limits)
	c.Subnets = subnetsFor(m, all, t.now().Mono)
	return c
}

// placesOf returns where the calls of a node stand in the queue.
func (g *Gate) placesOf(node string) (list []Queued) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue == nil {
		return nil
	}
	now, wall := g.sinceOpen(), g.clock.Now()
	for _, p := range g.queue.Places(node) {
		expected := g.budget.Expected(p.Action, p.Before, now)
		list = append(list, Queued{p.Action, p.Object, p.Class.String(), p.Before, wall.Add(expected - now).Truncate(time.Second)})
	}
	return list
}
