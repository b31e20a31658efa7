package classify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/topology"
)

// takePod takes in a pod that has the gate, or that has it no more.
func (t *term) takePod(is Pod, deleted bool) {
	p := t.pods[is.key()]
	switch {
	case deleted && p != nil && p.UID == is.UID:
		delete(t.pods, is.key())
	case deleted:
	case p == nil || p.UID != is.UID:
		t.next++
		t.pods[is.key()] = &pod{Pod: is, seen: t.next, fresh: true, queued: true}
		t.fresh = append(t.fresh, is.key())
	case p.Version != is.Version:
		p.Pod = is // what was decided of it may not hold any more
		if !p.done {
			p.barred = time.Time{}
		}
		t.queue(p)
	}
}

// takeList takes in all that have the gate.
func (t *term) takeList(list []Pod) {
	there := map[key]bool{}
	for _, is := range list {
		there[is.key()] = true
		t.takePod(is, false)
	}
	for k := range t.pods {
		if !there[k] {
			delete(t.pods, k)
		}
	}
}

// queue has a pod looked at, unless that is to come anyway.
func (t *term) queue(p *pod) {
	if !p.queued && !p.flying {
		p.queued = true
		t.due.add(p.key())
	}
}

// queueWaiting has all pods looked at again, in the order in which they came.
func (t *term) queueWaiting() { t.queueIf(func(*pod) bool { return true }) }

// retry has those looked at whose pause has ended, and those whose events are about to.
func (t *term) retry(now time.Time) {
	t.queueIf(func(p *pod) bool {
		return !p.barred.IsZero() && !now.Before(p.barred) || p.told != "" && !p.done && !now.Before(p.toldAt.Add(operator.TellAgain))
	})
}

func (t *term) queueIf(is func(*pod) bool) {
	var list []*pod
	for _, p := range t.pods {
		if is(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *pod) int { return cmp.Compare(a.seen, b.seen) })
	for _, p := range list {
		t.queue(p)
	}
}

// classifyPod begins the patch of a pod, or tells what it waits for.
func (t *term) classifyPod(k key, now time.Time) {
	p := t.pods[k]
	if p == nil || p.fresh || !p.queued {
		return // it is gone, or another one of the name, which the next read follows
	}
	p.queued = false
	if now.Before(p.barred) {
		return
	}
	p.barred, p.done = time.Time{}, false
	var answer outcome
	if !p.OnHost {
		var is bool
		if answer, is = t.classify(p.Pod.Pod); !is {
			return // until its namespace is told of
		}
	}
	if why := answer.wait; why.Cause != "" {
		t.tellPod(p, string(why.Cause), why.Message)
		return
	}
	labels, wait := t.labelsOf(p, answer.class, now)
	switch {
	case !wait.Until.IsZero():
		p.barred = wait.Until
		return
	case wait.Cause != "":
		p.barred = now.Add(longestPause) // nothing tells of a Node's label here
		t.tellPod(p, string(wait.Cause), wait.Message)
		return
	}
	t.patchPod(p, patchOf(p.Pod, answer.class.Topology, labels))
}

// patchPod patches a pod beside the loop.
func (t *term) patchPod(p *pod, patch []Operation) {
	p.flying = true
	t.due.begin(p.Namespace)
	k, version := p.key(), p.Version
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, limit)
		defer cancel()
		err := t.Objects.PatchPod(ctx, k.namespace, k.name, patch)
		t.post(func() { t.endPatch(p, version, err) })
	})
}

// endPatch takes in how that has ended.
func (t *term) endPatch(p *pod, version string, err error) {
	t.due.end(p.Namespace)
	p.flying = false
	now := t.Clock.Now()
	switch {
	case err == nil:
		// The watch takes it off the list. What it tells until then may be from before the patch.
		p.done, p.barred, p.pause = true, now.Add(longestPause), 0
		return
	case errors.Is(err, ErrGone):
		if t.pods[p.key()] == p {
			delete(t.pods, p.key())
		}
		return
	case errors.Is(err, ErrConflict) && p.Version != version:
		t.queue(p) // the watch has told of what is there now
		return
	}
	p.pause = min(longestPause, max(scanEvery, 2*p.pause))
	p.barred = now.Add(p.pause)
	// A conflict of which the watch tells nothing, again and again, is no pod that has changed: here it is not as the API server has it.
	if (!errors.Is(err, ErrConflict) || p.pause == longestPause) && t.ctx.Err() == nil {
		t.Log.Warn("a pod can't be classified; it is tried again, and waits", "pod", p.Namespace+"/"+p.Name, "error", err)
		t.tellPod(p, "Refused", "the gate "+Gate+" can't be taken off: "+err.Error())
	}
}

// tellPod tells people what a pod waits for, once for each reason, since words change with each moment, and before the event of that is dropped.
func (t *term) tellPod(p *pod, reason, message string) {
	if now := t.Clock.Now(); p.told != reason || !now.Before(p.toldAt.Add(operator.TellAgain)) {
		p.told, p.toldAt = reason, now
		t.Tell(podNotice(p.Pod, reason, message))
	}
}

// countApart is how long after a write a topology is written again of which nothing but counts is new: pods come and go in bursts.
const countApart = 10 * time.Second

// told is what was last written of a topology.
type told struct {
	version string // of the object that it was written on
	at      time.Time
	until   time.Time
	under   bool
}

// tellTopologies writes beside the loop what is new of the topologies.
func (t *term) tellTopologies(now time.Time) {
	for i, object := range t.topologies {
		last := t.told[object.Name]
		if last.under || last.version == object.ResourceVersion && now.Before(last.until) {
			continue
		}
		next, is := t.tellTopology(i, now)
		if counts := t.writeCount(next); !is && (!counts || now.Before(last.at.Add(countApart))) {
			continue
		}
		t.told[object.Name] = told{object.ResourceVersion, now, now.Add(longestPause), true}
		t.under.Go(func() {
			ctx, cancel := context.WithTimeout(t.ctx, limit)
			defer cancel()
			err := t.Objects.WriteTopology(ctx, next)
			t.post(func() {
				last := t.told[object.Name]
				last.under = false
				t.told[object.Name] = last
				t.wanted = true // the next status is written on what is there now
				if err == nil {
					if n, is := topologyNotice(next, object); is {
						t.Tell(n)
					}
				}
				if errors.Is(err, ErrConflict) || errors.Is(err, ErrGone) {
					err = nil
				}
				t.note("a topology's status can't be written; it is tried again", err)
			})
		})
	}
	t.forgetTopologies()
}

// forgetTopologies drops what was told of those that are gone.
func (t *term) forgetTopologies() {
	for name := range t.told {
		if !slices.ContainsFunc(t.Topologies, func(is topology.Topology) bool { return is.Name == name }) {
			delete(t.told, name)
		}
	}
}
