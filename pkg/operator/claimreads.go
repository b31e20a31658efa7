package operator

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/topology"
)

// readPod reads a pod whose address is to be taken without its agent's word.
func (t *term) readPod(of claims.Name) {
	c, key := t.claiming, "pod "+of.Namespace+"/"+of.Name
	if c.flying[key] || c.barred[key].until > t.now().Mono {
		return
	}
	c.flying[key] = true
	began := t.now()
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		p, err := t.o.Claims.ReadPod(ctx, of)
		t.post(func(t *term) {
			delete(c.flying, key)
			if c.changed = true; err != nil {
				c.barred[key] = barred{until: t.now().Mono + apart}
				t.sayOnce("a pod can't be read; it is tried again, and its address stays where it is", err)
				return
			}
			// What the watch has told may be older, or newer than the read: only where both say the same anything is taken.
			if !c.known.NoteRead(of, p, began.Wall) {
				pause := apart
				if p != nil && p.Topology == "" { // nothing tells of its end
					pause = setsEvery
				}
				c.barred[key] = barred{until: t.now().Mono + pause}
				return
			}
			delete(c.barred, key)
		})
	})
}

// readSets lists the StatefulSets.
func (t *term) readSets() {
	began := t.now()
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		list, err := t.o.Claims.ReadSets(ctx)
		t.post(func(t *term) {
			if t.claiming.changed = true; err != nil {
				t.sayOnce("StatefulSets can't be listed; it is tried again, and no claim ends with one until then", err)
				return
			}
			t.claiming.known.TakeSets(list, began.Wall)
		})
	})
}

// toldPod is what people were told last of a pod that waits.
type toldPod struct {
	cause topology.Cause
	at    time.Duration
}

// tellWaiting tells people what pods wait for, once for each cause, since words change with each moment, and before the event of that is dropped.
func (t *term) tellWaiting(list []claims.Waiting) {
	c, now, at := t.claiming, map[string]toldPod{}, t.now().Mono
	for _, w := range list {
		was, told := c.told[w.Pod.UID]
		if told && was.cause == w.Wait.Cause && at < was.at+TellAgain {
			now[w.Pod.UID] = was
			continue
		}
		now[w.Pod.UID] = toldPod{w.Wait.Cause, at}
		// What is on its way is told by what comes.
		if w.Wait.Cause != topology.Moving && w.Wait.Cause != topology.InUse {
			message := w.Wait.Message
			t.tellPeople(Notice{Kind: "Pod", Namespace: w.Pod.Namespace, Name: w.Pod.Name.Name, UID: w.Pod.UID, Warning: true, Reason: string(w.Wait.Cause),
				Message: message[:min(len(message), 4*mostWords)]})
		}
	}
	c.told = now
}
