package order

import "maps"

// Copy returns a term that goes on alone. Who writes a status decides by a copy, and keeps that once the write is
// done: what a write that conflicts has noted is noted of nothing.
func (t *Term) Copy() *Term {
	c := *t
	c.doubts, c.taken, c.given, c.made = maps.Clone(t.doubts), maps.Clone(t.taken), maps.Clone(t.given), maps.Clone(t.made)
	c.fences, c.lacked = maps.Clone(t.fences), maps.Clone(t.lacked)
	return &c
}
