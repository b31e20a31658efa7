package fleet

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/kube/crd/convert"
	"github.com/enipool/enipool/pkg/order"
)

// object is the NodeNetwork of a node as one process of its agent knows it, by the rules of package kube: it is read from the store itself
// and watched from there on, a copy that is older than one before counts where the store was put back alone.
type object struct {
	p    *life
	name string

	mu      sync.Mutex
	read    bool
	newest  order.Object
	was     crd.NodeNetworkSpec
	putBack int
	wrong   error
}

// run reads and watches until ctx ends.
func (o *object) run(ctx context.Context) {
	for ctx.Err() == nil {
		from, err := o.refresh(ctx)
		o.mu.Lock()
		o.wrong = err
		o.mu.Unlock()
		o.p.wakeUp()
		if err == nil {
			o.follow(ctx, from)
		}
		sleep(ctx, time.Second+o.p.n.w.store.latency())
	}
}

// refresh reads the newest copy, and returns from which change on to watch.
func (o *object) refresh(ctx context.Context) (from int, err error) {
	s := o.p.n.w.store
	var n *crd.NodeNetwork
	at := ""
	o.mu.Lock()
	before := o.newest.Version
	o.mu.Unlock()
	err = s.read(ctx, func() { n, at, from = s.network(o.name), strconv.Itoa(s.version), s.changes() })
	if err != nil {
		return 0, err
	}
	back := isOlder(at, before)
	if n != nil {
		o.take(n, back)
	} else {
		o.forget(at, back)
	}
	return from, nil
}

func (o *object) follow(ctx context.Context, from int) {
	s := o.p.n.w.store
	s.mu.Lock()
	w := s.begin(from, networkKey(o.name), func(c change) {
		if n, is := c.after.(*crd.NodeNetwork); is {
			o.take(n, false)
		} else {
			o.forget(strconv.Itoa(c.version), false)
		}
	})
	s.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case <-ctx.Done():
		s.end(w)
	case <-w.ended:
	}
}

func number(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

// isOlder tells whether a version is older than another one; none is neither.
func isOlder(one, other string) bool { return one != "" && other != "" && number(one) < number(other) }

func (o *object) take(n *crd.NodeNetwork, back bool) {
	is, err := convert.Object(n)
	if err != nil {
		o.p.n.w.complain("%s reads %v", o.name, err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !back && o.newest.Version != "" && !isOlder(o.newest.Version, is.Version) {
		return
	}
	if is.UID == o.newest.UID && (back || is.Generation < o.newest.Generation || is.Status.Revision < o.newest.Status.Revision) {
		o.putBack++
	}
	is.PutBack = o.putBack
	o.read, o.newest, o.was = true, is, n.Spec
	o.p.wakeUp()
}

func (o *object) forget(at string, back bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.read || o.newest.Version != "" && (back || isOlder(o.newest.Version, at)) {
		o.read, o.newest, o.was = true, order.Object{}, crd.NodeNetworkSpec{}
		o.p.wakeUp()
	}
}

// Newest implements agent.Object.
func (o *object) Newest() (order.Object, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest, o.read
}

// First implements agent.Object.
func (o *object) First() (order.Object, bool) { return o.Newest() }

func (o *object) ReadAgain() {} // First is the newest one here

// Wrong implements agent.Object.
func (o *object) Wrong() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrong
}

// Write implements agent.Object.
func (o *object) Write(ctx context.Context, from order.Object, spec order.Spec, asks order.Asks) (written order.Object, err error) {
	s := o.p.n.w.store
	o.mu.Lock()
	was := o.was
	o.mu.Unlock()
	var n *crd.NodeNetwork
	err = o.p.do(func() error {
		return s.request(ctx, networkKey(o.name), func() (err error) {
			if from.Version == "" {
				n, err = s.makeNetwork(o.name, convert.ToSpec(spec, asks, crd.NodeNetworkSpec{}))
			} else {
				n, err = s.writeSpec(o.name, from.Version, convert.ToSpec(spec, asks, was))
			}
			return err
		})
	})
	switch {
	case errors.Is(err, errConflict):
		_, again := o.refresh(ctx)
		return order.Object{}, errors.Join(order.ErrConflict, again)
	case err != nil:
		return order.Object{}, err
	}
	o.take(n, false)
	return convert.Object(n)
}
