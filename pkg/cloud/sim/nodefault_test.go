package sim

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// kindsOf makes n calls of Limits and returns the kinds of their errors.
func kindsOf(t *testing.T, c cloud.Cloud, n int) []error {
	t.Helper()
	var kinds []error
	for range n {
		_, err := c.Limits(t.Context())
		if err != nil {
			err = cloud.Kind(err)
		}
		kinds = append(kinds, err)
	}
	return kinds
}

func TestTheNextCallsFailInTurn(t *testing.T) {
	a := newAccount(t, Options{})
	a.FailNext("Limits", slices.Repeat([]Fault{{Err: cloud.ErrThrottled}}, 2)...)
	a.FailNext("Limits", Fault{Err: cloud.ErrUnavailable})
	a.FailNext("", Fault{Err: cloud.ErrForbidden})
	a.FailNext("Subnets", Fault{Err: cloud.ErrLimit})
	want := []error{cloud.ErrThrottled, cloud.ErrThrottled, cloud.ErrUnavailable, cloud.ErrForbidden, nil}
	if got := kindsOf(t, a.Old("n1"), 5); !slices.Equal(want, got) {
		t.Errorf("calls failed with %v, want %v", got, want)
	}
}

func TestFaultsByChanceRepeatWithTheSeed(t *testing.T) {
	run := func(seed uint64) (kinds []error) {
		a := newAccount(t, Options{Seed: seed})
		a.SetFaults(Chance{Action: "Subnets", Percent: 100, Fault: Fault{Err: cloud.ErrForbidden}},
			Chance{Percent: 25, Fault: Fault{Err: cloud.ErrThrottled}})
		kinds = kindsOf(t, a.Old("n1"), 1000)
		a.SetFaults()
		if slices.ContainsFunc(kindsOf(t, a.Old("n1"), 100), func(err error) bool { return err != nil }) {
			t.Error("calls fail when faults have stopped")
		}
		return kinds
	}
	kinds := run(1)
	throttled := 0
	for _, kind := range kinds {
		switch kind {
		case cloud.ErrThrottled:
			throttled++
		case nil:
		default:
			t.Fatalf("a call failed with %v", kind)
		}
	}
	if throttled < 200 || throttled > 300 {
		t.Errorf("%d of 1000 calls were throttled, want about 250", throttled)
	}
	if !slices.Equal(kinds, run(1)) {
		t.Error("the same seed gave other faults")
	}
	if slices.Equal(kinds, run(2)) {
		t.Error("another seed gave the same faults")
	}
}

func TestAnAccountMayRefuseAllCalls(t *testing.T) {
	a := newAccount(t, Options{})
	a.Refuse(cloud.ErrForbidden)
	_, err := a.Old("n1").Interfaces(t.Context())
	wantKind(t, err, cloud.ErrForbidden)
	wantKind(t, a.Old("n2").DeleteInterface(t.Context(), "eni-00000009"), cloud.ErrForbidden)
	a.Refuse(nil)
	if got := kindsOf(t, a.Old("n1"), 1); got[0] != nil {
		t.Errorf("a call failed with %v", got)
	}
}

func TestABucketLetsABurstPassAndThenARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, Options{Describing: Bucket{Burst: 3, Every: time.Second}, Mutating: Bucket{Burst: 1, Every: time.Minute}})
		n := a.Old("n1")
		throttled := cloud.ErrThrottled
		check := func(when string, want ...error) {
			t.Helper()
			if got := kindsOf(t, n, len(want)); !slices.Equal(want, got) {
				t.Errorf("%s calls failed with %v, want %v", when, got, want)
			}
		}
		check("at first", nil, nil, nil, throttled, throttled)
		time.Sleep(time.Second - 1)
		check("too early", throttled)
		time.Sleep(1 * time.Nanosecond)
		check("a second later", nil, throttled)
		time.Sleep(time.Hour)
		check("an hour later", nil, nil, nil, throttled)

		must(t, n.DeleteInterface(t.Context(), "eni-of-nobody")) // a bucket of its own
		time.Sleep(20 * time.Second)
		var e *cloud.Error
		err := a.Old("n2").DeleteInterface(t.Context(), "eni-of-nobody") // the account's, not the node's
		if !errors.As(err, &e) || e.Kind != throttled || e.RetryAfter != 40*time.Second {
			t.Errorf("error %#v, want throttled for 40 s", err)
		}
	})
}

func TestACallTakesItsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, Options{Latency: map[string]Latency{"": {Base: time.Second, Jitter: time.Second}, "Limits": {Base: time.Minute}}})
		a.FailNext("Interfaces", Fault{Delay: time.Hour})
		took := func(f func() error) time.Duration {
			start := time.Now()
			must(t, f())
			return time.Since(start)
		}
		n := a.Old("n1")
		if d := took(func() error { _, err := n.Limits(t.Context()); return err }); d != time.Minute {
			t.Errorf("Limits took %v, want a minute", d)
		}
		if d := took(func() error { _, err := n.Interfaces(t.Context()); return err }); d < time.Hour+time.Second {
			t.Errorf("Interfaces took %v, want an hour and more", d)
		}
		seen := map[time.Duration]bool{}
		for range 10 {
			d := took(func() error { return n.UnassignAddresses(t.Context(), "eni-00000001", nil) })
			if d < time.Second || d > 2*time.Second {
				t.Errorf("a call took %v, want 1 to 2 s", d)
			}
			seen[d] = true
		}
		if len(seen) < 5 {
			t.Errorf("calls took %v: no jitter", seen)
		}
	})
}

func TestACallThatIsGivenUpHasHadItsEffectOrNot(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		kind    error
		count   int
	}{
		{"before it", 4 * time.Second, cloud.ErrUnavailable, 0},
		{"after it", 6 * time.Second, cloud.ErrUnknown, 2},
		{"never", 11 * time.Second, nil, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := whole(t, newAccount(t, Options{Latency: map[string]Latency{"AssignAddresses": {Base: 10 * time.Second}}}))
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				got, err := a.Old("n1").AssignAddresses(ctx, "eni-00000001", eni.IPv4, 2)
				if tt.kind != nil {
					wantKind(t, err, tt.kind)
				} else if err != nil || len(got) != 2 {
					t.Errorf("AssignAddresses = %v, %v", got, err)
				}
				if got := a.Snapshot().Nodes["n1"][0].Addresses; len(got) != tt.count {
					t.Errorf("the ENI has %v, want %d", got, tt.count)
				}
			})
		})
	}
}

func TestASlowAttachShowsAnENIWithoutIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := whole(t, newAccount(t, Options{}))
		n := a.Old("n1")
		a.FailNext("CreateInterface", Fault{Delay: time.Minute})
		done := make(chan cloud.Interface)
		go func() {
			i, _ := n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 3})
			done <- i
		}()
		time.Sleep(30 * time.Second)
		list, err := n.Interfaces(t.Context())
		must(t, err)
		if len(list) != 2 || list[1].Index != -1 || len(list[1].Addresses) != 0 || list[1].Token != "t" {
			t.Errorf("while it is attached the ENI is shown as %+v", list)
		}
		if i := <-done; i.Index != 1 || len(i.Addresses) != 3 {
			t.Errorf("the ENI is %+v", i)
		}
	})
}

func TestACreationThatIsGivenUpLeavesAnENIToFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := whole(t, newAccount(t, Options{}))
		n := a.Old("n1")
		a.FailNext("CreateInterface", Fault{Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := n.CreateInterface(ctx, cloud.Create{Token: "t", Subnet: "a", V4: 3})
		wantKind(t, err, cloud.ErrUnknown)
		time.Sleep(time.Hour)
		if got := a.Snapshot().Nodes["n1"][1]; got.Index != -1 {
			t.Errorf("the ENI is %+v, want it unattached", got)
		}
		if i := create(t, n, "t", 3); i.Index != 1 || i.ID != "eni-00000003" || len(i.Addresses) != 3 {
			t.Errorf("the finished ENI is %+v", i)
		}
	})
}

// The ENI of a creation under way may be deleted by a call that comes between.
func TestACreationWhoseENIIsDeletedMeanwhileIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := whole(t, newAccount(t, Options{}))
		n := a.Old("n1")
		a.FailNext("CreateInterface", Fault{Delay: time.Minute})
		done := make(chan error)
		go func() {
			_, err := n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 3})
			done <- err
		}()
		time.Sleep(time.Second)
		must(t, n.DeleteInterface(t.Context(), "eni-00000003"))
		wantKind(t, <-done, cloud.ErrUnknown)
	})
}

func TestALateEffectComesAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := whole(t, newAccount(t, Options{}))
		n := a.Old("n1")
		a.FailNext("AssignAddresses", Fault{Later: 2 * time.Second}, Fault{Later: time.Second})
		for count := 1; count <= 2; count++ {
			_, err := n.AssignAddresses(t.Context(), "eni-00000001", eni.IPv4, count)
			wantKind(t, err, cloud.ErrUnknown)
		}
		for _, want := range []int{0, 2, 3} {
			if got := len(a.Snapshot().Nodes["n1"][0].Addresses); got != want {
				t.Errorf("the ENI has %d addresses, want %d", got, want)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestAPartialCallDoesHalf(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	n := a.Old("n1")
	a.FailNext("AssignAddresses", Fault{Partial: true}, Fault{Partial: true, Err: cloud.ErrUnknown})
	got, err := n.AssignAddresses(t.Context(), "eni-00000001", eni.IPv4, 3)
	if err != nil || len(got) != 2 {
		t.Errorf("AssignAddresses(3) = %v, %v, want 2 and no error", got, err)
	}
	more, err := n.AssignAddresses(t.Context(), "eni-00000001", eni.IPv4, 3)
	wantKind(t, err, cloud.ErrUnknown)
	if len(more) != 1 {
		t.Errorf("AssignAddresses(3) = %v with its error, want 1", more)
	}
	a.FailNext("UnassignAddresses", Fault{Partial: true})
	wantKind(t, n.UnassignAddresses(t.Context(), "eni-00000001", got), cloud.ErrUnknown)
	if left := a.Snapshot().Nodes["n1"][0].Addresses; !slices.Equal(left, append(got[1:], more...)) {
		t.Errorf("left are %v", left)
	}
}

func TestWhatIsTakenBehindTheBackIsGone(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	n := a.Old("n1")
	i := create(t, n, "t", 3)
	must(t, a.TakeAway(i.Addresses[1]))
	must(t, a.Detach(i.ID))
	list, err := n.Interfaces(t.Context())
	must(t, err)
	if got := list[1]; got.Index != -1 || !slices.Equal(got.Addresses, []netip.Addr{i.Addresses[0], i.Addresses[2]}) {
		t.Errorf("the ENI is %+v", got)
	}
	_, err = n.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1)
	wantKind(t, err, cloud.ErrNotFound)
	if a.Detach(i.ID) == nil {
		t.Error("what is detached was detached again")
	}
}

func TestAnswersAreOldButNotTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lag = 10 * time.Second
		a := whole(t, newAccount(t, Options{}))
		a.SetLag(lag)
		n := a.Old("n1")
		time.Sleep(time.Hour)
		free := a.Snapshot().Subnets[0].Free
		assign(t, n, "eni-00000001", 1)
		time.Sleep(lag / 2)
		assign(t, n, "eni-00000001", 1)
		time.Sleep(lag/2 - time.Second)
		enis, subnets := looking(t, n, free)
		if !enis[0] || !enis[1] || !enis[2] || !subnets[0] || !subnets[1] || !subnets[2] {
			t.Errorf("within the lag addresses were %v, missing in the subnet %v; want 0, 1 and 2", enis, subnets)
		}
		time.Sleep(time.Second + 1)
		if enis, subnets = looking(t, n, free); enis[0] || subnets[0] {
			t.Errorf("after the lag addresses were %v, missing in the subnet %v; want no 0", enis, subnets)
		}
		time.Sleep(lag)
		if enis, subnets = looking(t, n, free); len(enis)+len(subnets) != 2 {
			t.Errorf("long after it addresses were %v, missing in the subnet %v; want 2 alone", enis, subnets)
		}
	})
}

// looking returns how many addresses a thousand answers of each kind showed.
func looking(t *testing.T, n cloud.Cloud, free int) (enis, subnets map[int]bool) {
	t.Helper()
	enis, subnets = map[int]bool{}, map[int]bool{}
	for range 1000 {
		list, err := n.Interfaces(t.Context())
		must(t, err)
		enis[len(list[0].Addresses)] = true
		nets, err := n.Subnets(t.Context())
		must(t, err)
		subnets[free-nets[0].Free] = true
	}
	return enis, subnets
}
