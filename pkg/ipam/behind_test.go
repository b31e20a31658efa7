package ipam

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// Behind others an owner gets what it would get after they have taken theirs, and the
// node state shows nothing of them.
func TestWhoIsBehindOthersGetsWhatTheyLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{now: sec(1000)}
		m.begin(t)
		for range rapid.IntRange(0, 6).Draw(t, "used") {
			m.assign(t)
		}
		devices := rapid.SampledFrom([]string{"", "", "eth0", "eth1", "nowhere"})
		ahead := rapid.SliceOfN(devices, 0, 8).Draw(t, "ahead")
		device := devices.Draw(t, "device")
		after := m.s.Clone()
		for i, need := range ahead {
			_, _ = after.AssignPod(owner(fmt.Sprint("ahead-", i)), need, m.now)
		}
		want, wantErr := after.AssignPod(owner("late"), device, m.now)
		before := show(m.s.Addresses)
		got, err := m.s.AssignPodBehind(ahead, owner("late"), device, m.now)
		if fmt.Sprint(got.Addresses) != fmt.Sprint(want.Addresses) || (err == nil) != (wantErr == nil) {
			t.Fatalf("got %v, %v; want %v, %v", got, err, want, wantErr)
		}
		var none *Exhausted
		if errors.As(err, &none) && (none.Ahead != len(ahead) || none.Releasing > 0) {
			t.Fatalf("the numbers tell of something else: %+v", none)
		}
		m.s.UndoLease(got)
		if now := show(m.s.Addresses); now != before {
			t.Fatalf("before:\n%snow:\n%s", before, now)
		}
	})
}

func TestWhoIsBehindOthersIsToldHowMany(t *testing.T) {
	s := nodeState(t, 1, `10.0.0.11 0 free 1`)
	_, err := s.AssignPodBehind([]string{"", "eth1"}, owner("late"), "", sec(2))
	const want = "no free ipv4 address: 1 addresses on 1 ENIs, 0 used, 0 cooling, 1 free; 2 pods waited before this one"
	if fmt.Sprint(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	s = nodeState(t, 1, `10.0.0.11 0 free 1`)
	if _, err := s.AssignPodBehind([]string{""}, owner("late"), "", sec(2)); !strings.HasSuffix(fmt.Sprint(err), "; 1 pod waited before this one") {
		t.Errorf("one ahead: %v", err)
	}
}

// A store rounds times up to whole milliseconds.
func TestWithoutACoolDownAReleasedAddressIsFreeAtOnce(t *testing.T) {
	s := nodeState(t, 1, `10.0.0.11 0 cooling 5`)
	s.Settings.CoolDown = 0
	now := sec(5) - 999_999
	if _, err := s.AssignPod(owner("late"), "", now); err != nil {
		t.Error(err)
	}
	s = nodeState(t, 1, `10.0.0.11 0 cooling 5`)
	s.Settings.CoolDown = 1
	if _, err := s.AssignPod(owner("late"), "", now); err == nil {
		t.Error("with one it is not")
	}
	if c := s.Count(now, func(a eni.Address) bool { return true }); c.Cooling != 1 {
		t.Errorf("%+v", c)
	}
}
