package classify

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/topology"
)

// Options are what a flow works with.
type Options struct {
	Objects  Objects
	Families []eni.Family // that pods have addresses of
	Tell     func(operator.Notice)
	Log      *slog.Logger
	Clock    operator.Clock

	// ZoneLabels returns the values of the label of Nodes for a zone, false as long as not all Nodes are known.
	ZoneLabels func(zone string) (operator.ZoneLabels, bool)

	// CountOf returns how far a topology is used, false as long as that is not known. nil: nobody counts.
	CountOf func(topology string) (topology.Count, bool)
}

const (
	// apart is the time between two reads of topologies, and between two looks at all pods that wait.
	apart = 100 * time.Millisecond
	// scanEvery is how often it is asked what is to be tried again.
	scanEvery = time.Second
	// limit is how long a request may take.
	limit = 10 * time.Second
	// longestPause is the longest time until what was refused is tried again, or a pod that was classified and still shows its gate.
	longestPause = time.Minute
)

// term is one flow, while its operator leads. Only its loop touches what is not under mu.
type term struct {
	Options
	ctx   context.Context
	under sync.WaitGroup
	known
	pods  map[key]*pod
	fresh []key // pods that no read of topologies has followed yet
	due   turns
	reads
	changed  bool // something that pods are classified by
	complete bool
	lookAt   time.Time // when the pods that wait are looked at next, after a change
	scanAt   time.Time
	told     map[string]told // topologies, by name
	said     map[string]bool // what the log has, until it goes well again

	mu    sync.Mutex
	inbox []func()
	wake  chan struct{}
}

// pod is one that has the gate.
type pod struct {
	Pod
	seen   uint64 // its place among all: the first comes first
	fresh  bool   // no read of topologies has followed it yet
	flying bool   // a patch is under way
	done   bool   // one has succeeded
	queued bool   // it is in fresh or due
	barred time.Time
	pause  time.Duration
	told   string // of what people were told last
	toldAt time.Time
}

// reads is what is known of reads of the topologies.
type reads struct {
	next    uint64 // serial number of pods
	wanted  bool   // one of them changed
	under   bool
	at      time.Time // when the next may begin
	pause   time.Duration
	succeed bool // one did
}

// Run classifies pods until ctx ends. A second one beside it, of an operator that does not lead any more, is harmless: a patch
// that comes too late finds no gate.
func Run(ctx context.Context, o Options) { newTerm(o).run(ctx) }

func newTerm(o Options) *term {
	t := &term{Options: o, pods: map[key]*pod{}, told: map[string]told{}, said: map[string]bool{}, wake: make(chan struct{}, 1)}
	t.known.namespaces, t.Taken, t.known.Families = map[string]Namespace{}, map[netip.Addr]bool{}, o.Families
	t.due = newTurns()
	t.forget()
	t.wanted = true
	return t
}

func (t *term) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	t.ctx = ctx
	defer t.under.Wait()
	defer cancel()
	t.under.Go(func() { t.Objects.Watch(ctx, func(e Event) { t.post(func() { t.takeEvent(e) }) }) })
	for ctx.Err() == nil {
		t.Clock.Sleep(ctx, t.wake, t.turn())
	}
}

// post gives the loop something to do.
func (t *term) post(do func()) {
	t.mu.Lock()
	t.inbox = append(t.inbox, do)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// turn does what there is to do, and returns how long nothing is to be done if nothing happens.
func (t *term) turn() time.Duration {
	t.mu.Lock()
	inbox := t.inbox
	t.inbox = nil
	t.mu.Unlock()
	for _, do := range inbox {
		do()
	}
	now := t.Clock.Now()
	scans := !now.Before(t.scanAt)
	if scans {
		t.scanAt = now.Add(scanEvery)
		t.retry(now)
	}
	t.readIfDue(now)
	if !t.complete || !t.succeed {
		return scanEvery // without all there is a pod would be taken for one of no topology
	}
	if t.changed && !now.Before(t.lookAt) {
		t.changed, t.lookAt = false, now.Add(apart)
		t.forget()
		t.queueWaiting()
		t.tellTopologies(now)
	} else if scans {
		t.tellTopologies(now)
	}
	for {
		k, is := t.due.next()
		if !is {
			break
		}
		t.classifyPod(k, now)
	}
	wait := t.scanAt.Sub(now)
	if t.changed {
		wait = min(wait, t.lookAt.Sub(now))
	}
	if !t.reads.under && (t.wanted || len(t.fresh) > 0) {
		wait = min(wait, t.reads.at.Sub(now))
	}
	return max(wait, time.Millisecond)
}

// takeEvent takes in a change. It may come late or twice.
func (t *term) takeEvent(e Event) {
	var err error
	changed := e.Complete && !t.complete
	switch {
	case e.Pod != nil:
		t.takePod(*e.Pod, e.Deleted)
	case e.Listed != nil:
		t.takeList(*e.Listed)
	case e.Namespace != nil:
		changed = t.takeNamespace(*e.Namespace, e.Deleted)
	case e.Subnet != nil:
		changed, err = t.takeSubnet(e.Subnet, e.Deleted)
	case e.Claim != nil:
		changed, err = t.takeClaim(e.Claim, e.Deleted)
	case e.Topology:
		t.wanted = true
	}
	t.complete = t.complete || e.Complete
	t.changed = t.changed || changed
	if err != nil && changed {
		t.Log.Warn("an object can't be read, and counts as little as it can", "error", err)
	}
}

// readIfDue begins to read the topologies, and the namespaces of the pods that have come since the last time. A watch may lag: a pod that was made
// after a topology, or after its namespace got a label, must not be taken for one of none, so a read follows each pod.
func (t *term) readIfDue(now time.Time) {
	if t.reads.under || len(t.fresh) == 0 && !t.wanted || now.Before(t.reads.at) {
		return
	}
	batch, last := t.fresh, t.next
	t.fresh, t.wanted, t.reads.under, t.reads.at = nil, false, true, now.Add(apart)
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, limit)
		defer cancel()
		list, in, err := t.readAll(ctx, namespacesOf(batch))
		t.post(func() {
			t.reads.under = false
			if t.note("topologies and namespaces can't be read; it is tried again, and gated pods wait", err); err != nil {
				t.fresh, t.wanted = append(batch, t.fresh...), true
				t.reads.pause = min(longestPause, max(scanEvery, 2*t.reads.pause))
				t.reads.at = t.Clock.Now().Add(t.reads.pause)
				return
			}
			if t.takeTopologies(list) || !t.succeed {
				t.changed = true
				t.forget() // those of the batch go by this list, though all that wait are looked at later
			}
			for _, n := range in {
				t.changed = t.takeNamespace(n, false) || t.changed
			}
			t.succeed, t.reads.pause = true, 0
			for _, k := range batch {
				if p := t.pods[k]; p != nil && p.fresh && p.seen <= last {
					p.fresh = false
					t.due.add(k)
				}
			}
		})
	})
}

// readAll reads what pods of these namespaces are classified by and what may have changed just before they were made.
func (t *term) readAll(ctx context.Context, namespaces []string) (list []*crd.PodSubnetTopology, in []Namespace, err error) {
	if list, err = t.Objects.ReadTopologies(ctx); err != nil || len(namespaces) == 0 {
		return list, nil, err
	}
	in, err = t.Objects.ReadNamespaces(ctx, namespaces)
	return list, in, err
}

// note logs an error once, until it goes well again.
func (t *term) note(what string, err error) {
	switch {
	case err == nil:
		delete(t.said, what)
	case t.ctx.Err() == nil && !t.said[what]:
		t.said[what] = true
		t.Log.Warn(what, "error", err)
	}
}
