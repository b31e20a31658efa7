package scale

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plain are settings of the equation alone, in percent of a batch.
func plain(batch, minFree int) Config {
	c := Default()
	c.Batch, c.MinFree, c.MaxFree = batch, minFree, minFree+100
	return c
}

const manyAddresses = 1 << 30

func TestRequestFollowsTheVectors(t *testing.T) {
	for _, tt := range []struct {
		id                         string
		batch, minFree, used, want int
	}{
		{"A01", 16, 50, 0, 16}, {"A02", 16, 50, 1, 16}, {"A03", 16, 50, 7, 16}, {"A04", 16, 50, 8, 16},
		{"A05", 16, 50, 9, 32}, {"A06", 16, 50, 15, 32}, {"A07", 16, 50, 16, 32}, {"A08", 16, 50, 24, 32},
		{"A09", 16, 50, 25, 48}, {"A10", 16, 50, 32, 48}, {"A11", 16, 50, 36, 48}, {"A12", 16, 50, 40, 48},
		{"A13", 16, 50, 41, 64}, {"A14", 16, 50, 48, 64}, {"A15", 16, 50, 75, 96}, {"A16", 16, 50, 100, 112},
		{"A17", 16, 50, 242, 256}, {"A18", 16, 50, 250, 272}, {"A19", 16, 0, 0, 0}, {"A20", 16, 0, 1, 16},
		{"A21", 16, 0, 16, 16}, {"A22", 16, 0, 17, 32}, {"A23", 16, 100, 0, 16}, {"A24", 16, 100, 1, 32},
		{"A25", 16, 100, 16, 32}, {"A26", 16, 100, 17, 48}, {"A27", 16, 1, 0, 16}, {"A28", 16, 1, 15, 16},
		{"A29", 16, 1, 16, 32}, {"A30", 16, 30, 11, 16}, {"A31", 16, 30, 12, 32}, {"A32", 1, 50, 0, 1},
		{"A33", 1, 50, 10, 11}, {"A34", 1, 100, 5, 6}, {"A35", 1, 0, 0, 0}, {"A36", 1, 0, 13, 13},
		{"A37", 3, 50, 1, 3}, {"A38", 3, 50, 2, 6}, {"A39", 10, 30, 7, 10}, {"A40", 10, 30, 8, 20},
		{"A41", 10, 14, 9, 20}, {"A42", 8, 150, 4, 16}, {"A43", 8, 200, 0, 16}, {"A44", 30, 20, 24, 30},
		{"A45", 30, 20, 25, 60}, {"A46", 50, 50, 16, 50}, {"A47", 100, 29, 71, 100}, {"A48", 100, 29, 72, 200},
		{"a product with the inverse of 5 rounds up to 4 batches", 5, 20, 14, 15},
		{"a negative number is 0", 16, -50, -3, 0},
		{"a batch below 1 is 1", 0, 100, 5, 6},
		{"best effort: 20 kept free, one by one", 1, 2000, 5, 25},
		{"burstable: two ENIs of 14 kept free", 14, 200, 15, 56},
	} {
		if got := Request(tt.batch, tt.minFree, tt.used); got != tt.want {
			t.Errorf("%s: Request(%d, %d, %d) = %d, want %d", tt.id, tt.batch, tt.minFree, tt.used, got, tt.want)
		}
	}
}

// TestPrimariesFollowTheVectors holds both forms side by side. Where the
// document's free addresses are fewer than m, or fewer than none, it is wrong for
// a pool: a pod would wait for a batch that nobody asks for.
func TestPrimariesFollowTheVectors(t *testing.T) {
	for _, tt := range []struct {
		id                             string
		batch, minFree, used, primary  int
		request                        int
		document, free, safe, safeFree int
	}{
		{"A49", 16, 50, 8, 1, 16, 15, 7, 31, 23},
		{"A50", 16, 50, 7, 1, 16, 15, 8, 15, 8},
		{"A51", 16, 50, 23, 1, 32, 31, 8, 31, 8},
		{"A52", 16, 50, 24, 1, 32, 31, 7, 47, 23},
		{"A53", 16, 50, 24, 2, 32, 30, 6, 46, 22},
		{"A54", 16, 50, 25, 1, 48, 47, 22, 47, 22},
		{"A55", 16, 50, 0, 1, 16, 15, 15, 15, 15},
		{"A56", 16, 0, 15, 1, 16, 15, 0, 15, 0},
		{"A57", 16, 0, 16, 1, 16, 15, -1, 31, 15},
		{"A58", 16, 0, 0, 1, 0, -1, -1, 15, 15},
		{"A59", 1, 50, 10, 1, 11, 10, 0, 11, 1},
		{"A60", 1, 50, 10, 2, 11, 9, -1, 11, 1},
		{"A61", 1, 0, 10, 1, 10, 9, -1, 10, 0},
		{"A62", 4, 25, 3, 1, 4, 3, 0, 7, 4},
		{"A63", 4, 25, 3, 2, 4, 2, -1, 6, 3},
		{"A64", 8, 50, 4, 4, 8, 4, 0, 12, 8},
	} {
		if got := Request(tt.batch, tt.minFree, tt.used); got != tt.request {
			t.Errorf("%s: Request = %d, want %d", tt.id, got, tt.request)
		}
		c := plain(tt.batch, tt.minFree)
		if got := c.Need(tt.used, tt.primary, manyAddresses); got != tt.request {
			t.Errorf("%s: with primaries not counted Need = %d, want %d", tt.id, got, tt.request)
		}
		c.CountPrimaries = true
		safe := c.Need(tt.used, tt.primary, manyAddresses)
		if safe != tt.safe || safe-tt.used != tt.safeFree {
			t.Errorf("%s: safe Need = %d with %d free, want %d with %d", tt.id, safe, safe-tt.used, tt.safe, tt.safeFree)
		}
		c.Form = Document
		document := c.unbounded(tt.used, tt.primary)
		if document != tt.document || document-tt.used != tt.free {
			t.Errorf("%s: document form = %d with %d free, want %d with %d", tt.id, document, document-tt.used, tt.document, tt.free)
		}
		// A58: a pool of -1 is none.
		if got, want := c.Need(tt.used, tt.primary, manyAddresses), max(tt.document, 0); got != want {
			t.Errorf("%s: document Need = %d, want %d", tt.id, got, want)
		}
	}
}

func TestNeedStaysInBounds(t *testing.T) {
	for _, tt := range []struct {
		id                                 string
		batch, minPool, demand, most, want int
	}{
		{"A65", 16, 0, 242, 250, 250},
		{"A66", 16, 0, 300, 250, 250},
		// A67: the batch needs no lowering to 30 first: most cuts 50 to the same.
		{"A67", 50, 0, 16, 30, 30},
		// A68: a maximum of 0 divides by a batch of 0 there and releases all. Here a
		// node that can hold nothing needs nothing, by plain arithmetic, and Decide
		// still leaves what pods have; see TestAMaximumOfNothingTakesNoPodsAddress.
		{"A68", 16, 0, 5, 0, 0},
		{"a negative maximum is none", 16, 0, 5, -16, 0},
		{"the smallest pool", 16, 40, 5, 250, 40},
		{"the smallest pool is no reason to ask for what can't be", 16, 40, 5, 30, 30},
		{"A72: 8 pods", 16, 0, 8, 250, 16},
		{"A72: 9 pods", 16, 0, 9, 250, 32},
		{"A72: 8 again, no hysteresis in the equation", 16, 0, 8, 250, 16},
	} {
		c := plain(tt.batch, 50)
		c.MinPool = tt.minPool
		if got := c.Need(tt.demand, 0, tt.most); got != tt.want {
			t.Errorf("%s: Need(%d, 0, %d) = %d, want %d", tt.id, tt.demand, tt.most, got, tt.want)
		}
	}
}

// exact is the equation in rational numbers, as the document writes it.
func exact(batch, minFree, used int) int {
	sum := new(big.Rat).Add(big.NewRat(int64(minFree), 100), big.NewRat(int64(used), int64(batch)))
	up := new(big.Int).Add(sum.Num(), new(big.Int).Sub(sum.Denom(), big.NewInt(1)))
	up.Div(up, sum.Denom())
	return batch * int(up.Int64())
}

func TestRequestIsExact(t *testing.T) {
	for batch := 1; batch <= 32; batch++ {
		for minFree := 0; minFree <= 210; minFree++ {
			for used := 0; used <= 2*batch+1; used++ {
				if got, want := Request(batch, minFree, used), exact(batch, minFree, used); got != want {
					t.Fatalf("Request(%d, %d, %d) = %d, want %d", batch, minFree, used, got, want)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		batch := rapid.IntRange(1, mostAddresses).Draw(t, "batch")
		minFree := rapid.IntRange(0, mostPercent).Draw(t, "minFree")
		used := rapid.IntRange(0, 1<<40).Draw(t, "used")
		if got, want := Request(batch, minFree, used), exact(batch, minFree, used); got != want {
			t.Fatalf("Request(%d, %d, %d) = %d, want %d", batch, minFree, used, got, want)
		}
	})
	if got := Request(16, 50, math.MaxInt-100); got < math.MaxInt-100 {
		t.Errorf("Request of the largest number overflows to %d", got)
	}
}

// TestFreeStaysWithinABatch is the free-space theorem, and I16: m <= free < m+B,
// in both directions of the safe form too.
func TestFreeStaysWithinABatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := plain(rapid.IntRange(1, 300).Draw(t, "batch"), rapid.IntRange(0, 1000).Draw(t, "minFree"))
		c.CountPrimaries = rapid.Bool().Draw(t, "count primaries")
		used := rapid.IntRange(0, 5000).Draw(t, "used")
		primaries := rapid.IntRange(0, 20).Draw(t, "primaries")
		need := c.Need(used, primaries, manyAddresses)
		m := c.MinFree * c.Batch // hundredths
		if free := 100 * (need - used); free < m || free >= m+100*c.Batch {
			t.Fatalf("%d of %d are used: %d hundredths are free, not %d to less than %d", used, need, free, m, m+100*c.Batch)
		}
		if (need+c.counted(primaries))%c.Batch != 0 {
			t.Fatalf("%d is not of whole batches", need)
		}
		if more := c.Need(used+1, primaries, manyAddresses); more < need {
			t.Fatalf("one more pod needs %d instead of %d", more, need)
		}
	})
}

func TestThresholdsRoundHalvesUp(t *testing.T) {
	for _, tt := range []struct{ batch, minFree, maxFree, low, high int }{
		{16, 50, 150, 8, 24},
		{16, 100, 200, 16, 32},
		{3, 50, 150, 2, 5},
		{1, 50, 150, 1, 2},
		{50, 29, 129, 15, 65}, // floats: 14, more than a batch apart
		{25, 14, 114, 4, 29},  // floats: 28, less than a batch apart: 22 pods swing 50, 25, 50 for ever
	} {
		c := Config{Batch: tt.batch, MinFree: tt.minFree, MaxFree: tt.maxFree}
		if low, high := c.Thresholds(); low != tt.low || high != tt.high {
			t.Errorf("thresholds of %d, %d %%, %d %% are %d and %d, want %d and %d", tt.batch, tt.minFree, tt.maxFree, low, high, tt.low, tt.high)
		}
	}
	for batch := 1; batch <= 1000; batch++ {
		for minFree := 0; minFree <= 100; minFree++ {
			low, high := plain(batch, minFree).Thresholds()
			if high-low != batch {
				t.Fatalf("batch %d, minFree %d: thresholds %d and %d are not a batch apart", batch, minFree, low, high)
			}
		}
	}
}

// A pool that begins with nothing and has the same pods for an hour comes to what Settled says, whatever the strategy.
func TestPoolsSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		if rapid.Bool().Draw(t, "kpa") {
			c = anyKPA(t)
		}
		c = c.Normal()
		o := Observation{Demand: rapid.IntRange(0, 90).Draw(t, "pods"), Primaries: rapid.IntRange(0, 3).Draw(t, "primaries"), Most: rapid.IntRange(0, 200).Draw(t, "most"), Valid: true}
		s, d := New(c, 0, 0), Decision{}
		for now := range 3600 {
			s, d = c.Decide(s, time.Duration(now)*time.Second, o)
			o.Owned = d.Target
		}
		if want := c.Settled(o.Demand, o.Primaries, o.Most); d.Target != want {
			t.Fatalf("%+v of %+v: target %d, want %d", c, o, d.Target, want)
		}
	})
}
