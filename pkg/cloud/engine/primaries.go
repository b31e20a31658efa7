package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// primaries are when the primary ENIs of nodes were described, where the pages of a VPC lack them.
type primaries struct {
	at   map[string]time.Time // by instance
	last time.Time            // when one was described again that was known
}

// What is known of a primary ENI that no pod uses is described again when it is so old, but one in that time: each takes requests of its own, of which
// the account has few.
const (
	primaryAge  = time.Hour
	primaryPace = time.Minute
	mostAtOnce  = 10 // after a long time without any
)

// notePrimary takes in that the node was described by itself.
func (r *Region) notePrimary(instance string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.primaries.at[instance] = r.self.clock.Now()
}

// duePrimaries returns those of the instances whose primary ENI is to be described again, the one first that was described longest ago.
func (r *Region) duePrimaries(instances []string) []string {
	if !r.t.HidesPrimary {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, p := r.self.clock.Now(), &r.primaries
	if p.last.IsZero() {
		p.last = now
	}
	due := slices.DeleteFunc(slices.Clone(instances), func(id string) bool { return now.Sub(p.at[id]) < primaryAge })
	slices.SortFunc(due, func(a, b string) int { return cmp.Or(p.at[a].Compare(p.at[b]), cmp.Compare(a, b)) })
	due = due[:min(len(due), int(min(now.Sub(p.last)/primaryPace, mostAtOnce)))]
	if len(due) > 0 {
		p.last = now
	}
	return due
}

// describePrimaries describes those nodes by themselves whose primary ENI is known from long ago, adds their views, and returns the instances that are
// left. A node of which that fails is described with the others, and goes by what is known.
func (r *Region) describePrimaries(ctx context.Context, nodes map[string]*Node, together []string, views map[string]cloud.View) []string {
	for _, id := range r.duePrimaries(together) {
		_, err := nodes[id].describeENIs(ctx)
		if errors.Is(err, cloud.ErrThrottled) {
			break
		}
		if r.notePrimary(id); err == nil {
			views[id] = nodes[id].viewAfter(nil)
		}
	}
	return slices.DeleteFunc(together, func(id string) bool { _, done := views[id]; return done })
}
