package scale

// Request is the scaling equation of sources/cns-scaling-equation.md,
//
//	Request = B * ceil(mf + U/B)
//
// with minFree = 100 mf in percent of a batch. Whole numbers only: the result is
// exact. Of it at least mf*B addresses are free and less than (mf+1)*B, whatever
// used is; it depends on nothing that was requested before. A batch below 1 is
// taken as 1, as the monitor of sources/cns-background.md does, a number below 0 as 0.
func Request(batch, minFree, used int) int {
	batch, minFree, used = max(batch, 1), max(minFree, 0), max(used, 0)
	// Whole batches come out of the ceiling first, so that no product overflows.
	whole := minFree/100 + used/batch
	rest := minFree%100*batch + used%batch*100
	return batch * (whole + ceilDiv(rest, 100*batch))
}

// Need returns how many secondary addresses a node should have for that many pods:
// the equation, less the primary addresses if they are counted, within MinPool and
// most. Most is what the node can hold and comes before MinPool.
//
// Where primaries are counted, primaries plus secondaries are whole batches. The
// form of sources/cns-scaling-equation.md takes them off after rounding, so that
// they are missing from the free addresses: with B = 16 and mf = 0.5, 8 pods and a
// primary get 15 and 7 are free instead of 8; with mf = 0, 16 pods get 15. The safe
// form rounds pods plus primaries and keeps what Request promises.
func (c Config) Need(demand, primaries, most int) int {
	return max(0, min(max(c.unbounded(demand, primaries), c.MinPool), most))
}

// Settled returns how many secondary addresses a node has when it has had that many pods for long: Need, and with KPA as many batches as the mean
// asks for, which is the demand by then (sources/kpa-algorithms.md). The bounds are those of Need.
func (c Config) Settled(demand, primaries, most int) int {
	need := c.Need(demand, primaries, most)
	if c.Strategy != KPA {
		return need
	}
	counted := c.counted(primaries)
	batches := ceilDiv(100*(max(demand, 0)+counted), max(c.Batch, 1)*c.KPA.Utilization)
	if batches > 0 {
		batches = max(batches, c.KPA.Activation)
	}
	return max(need, min(batches*c.Batch-counted, most))
}

// unbounded is Need without MinPool and most. In the document's form it can be
// negative.
func (c Config) unbounded(demand, primaries int) int {
	primaries = c.counted(primaries)
	if c.Form == Document {
		return Request(c.Batch, c.MinFree, demand) - primaries
	}
	return Request(c.Batch, c.MinFree, max(demand, 0)+primaries) - primaries
}

// counted returns the primaries that are part of the batches.
func (c Config) counted(primaries int) int {
	if !c.CountPrimaries {
		return 0
	}
	return max(primaries, 0)
}

// Thresholds returns m and M of sources/cns-background.md in addresses: with fewer
// than m free a pool grows, with more than M free it shrinks. Halves round up, exactly.
func (c Config) Thresholds() (low, high int) {
	return (2*c.Batch*c.MinFree + 100) / 200, (2*c.Batch*c.MaxFree + 100) / 200
}

// ceilDiv divides and rounds up; a is at least 0 and b at least 1.
func ceilDiv(a, b int) int { return (a + b - 1) / b }
