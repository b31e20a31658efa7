package scale

import "time"

// decideReactive decides as the monitor of sources/cns-background.md did, which the
// equation replaces: one batch at a time. It grows when what was asked for leaves
// fewer than m free and shrinks when what is there leaves more than M. Growing counts
// what is on its way, or it would ask for that again; shrinking counts what is
// there and does not leave already, or it would release what has not come yet.
//
// Its code released from M on; the document says that M is exceeded, and so it is
// here. That keeps one batch more where exactly M are free.
//
// Where that monitor was wrong this one is not. Its thresholds are exact: in floats
// some of them lie less than a batch apart, and the pool grows and shrinks for
// ever. It grows below Most only, where the other stopped at exactly Most and went
// on above it, and a pool that is larger than Most shrinks. It does not shrink
// while the demand can't be read, and takes what is decided to leave as leaving
// even before it is marked so. Primaries and MinPool it does not know.
func (z *sizing) decideReactive() (int, Reason) {
	last := z.s.Target
	z.unheld = z.stepReactive(last)
	switch {
	case z.unheld < last && !z.o.Valid:
		return last, HoldUnreadable
	case z.o.Exhausted:
		return z.unheld, Exhausted
	case z.unheld > last:
		return z.unheld, Up
	case z.unheld < last:
		return z.unheld, Release
	case z.unheld >= z.o.Most && z.unheld < z.c.unbounded(z.s.Demand, 0):
		return z.unheld, Clamped
	}
	return z.unheld, Steady
}

// stepReactive returns the addresses to ask for after one step from those that were.
func (z *sizing) stepReactive(requested int) int {
	c, o := z.c, z.o
	c.Batch = max(1, min(c.Batch, o.Most))
	low, high := c.Thresholds()
	if o.Exhausted { // address by address: one stays free, the second is released
		c.Batch, low, high = 1, 1, 1
	}
	free := o.Owned - o.Assigned - max(o.Releasing, o.Owned-requested)
	switch {
	case requested-o.Assigned < low && requested < o.Most:
		return min(requested+c.Batch-requested%c.Batch, o.Most)
	case free > high || requested > o.Most && free > 0:
		return requested - min(free, overWhole(requested, c.Batch))
	}
	return requested
}

// overWhole returns what n is over whole batches, a batch if nothing.
func overWhole(n, batch int) int {
	if n%batch == 0 {
		return batch
	}
	return n % batch
}

// againReactive returns the next second, as a time since boot, if a step in it changes something,
// else 0.
func (z *sizing) againReactive() time.Duration {
	next := z.stepReactive(z.s.Target)
	if next == z.s.Target || next < z.s.Target && !z.o.Valid {
		return 0
	}
	return time.Duration(z.s.Now+1) * time.Second
}
