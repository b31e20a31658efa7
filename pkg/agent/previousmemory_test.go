package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// An agent of the previous release has given addresses back and wrote that down in its own
// words, "gone" and "goneENIs". The one that follows it must not take them in because
// describes still show them: pods would get them.
func TestWhatThePreviousReleaseGaveBackThisOneDoesNotTakeIn(t *testing.T) {
	for name, translate := range map[string]func([]byte, time.Duration) []byte{
		"the same release":     func(text []byte, _ time.Duration) []byte { return text },
		"the previous release": asThePreviousReleaseWrote,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				synctest.Test(t, func(t *testing.T) {
					w, n, _ := givenBack(t, seed)
					n.kill()
					n.memory = translate(n.memory, w.now())
					for range 60 { // pods that come while the agent is upgraded
						_ = n.add()
					}
					n.start(-1, false)
					defer n.stop()
					for range 80 {
						time.Sleep(100 * time.Millisecond)
						synctest.Wait()
						n.retry()
						if err := w.check(); err != nil {
							t.Errorf("seed %d: %v", seed, err)
							break
						}
					}
				})
			}
		})
	}
}

// A node goes back to the previous release just after addresses were released: its agent must not take
// them in because describes still show them. It knows those by "gone" and "goneENIs" alone.
func TestThePreviousReleaseLearnsWhatThisOneGaveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, _ := givenBack(t, 1)
		n.kill()
		var now memory
		var old struct { // of the previous release's pkg/agent/memory.go
			Gone    map[netip.Addr]time.Duration `json:"gone,omitempty"`
			GoneENI map[string]time.Duration     `json:"goneENIs,omitempty"`
		}
		if err := errors.Join(json.Unmarshal(n.memory, &now), json.Unmarshal(n.memory, &old)); err != nil {
			t.Fatal(err)
		}
		settle, released := testConfig("n1").Settle, 0
		fresh := func(what any, at time.Duration, noted bool) {
			if !noted || at > w.now() || at+settle <= w.now() {
				t.Errorf("%v: the previous release reads %s (there: %t), it is %s", what, at, noted, w.now())
			}
			released++
		}
		for _, list := range now.Notes.Gone {
			for _, addr := range list {
				at, noted := old.Gone[addr]
				fresh(addr, at, noted)
			}
		}
		for _, id := range now.Notes.Deleted {
			at, noted := old.GoneENI[id]
			fresh(id, at, noted)
		}
		if released == 0 || released != len(old.Gone)+len(old.GoneENI) {
			t.Errorf("of %d notes it reads %v, %v", released, old.Gone, old.GoneENI)
		}
	})
}

// What is forgotten here is forgotten there, and nothing is written again for the time alone.
func TestEarlierNotesFollowTheNotes(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var e earlierNotes
	for _, step := range []struct {
		now   time.Duration
		notes cloud.Notes
		want  earlierNotes
	}{
		{1, cloud.Notes{}, earlierNotes{}},
		{2, cloud.Notes{Gone: map[string][]netip.Addr{"x": {a}}}, earlierNotes{Gone: map[netip.Addr]time.Duration{a: 2}}},
		{3, cloud.Notes{Gone: map[string][]netip.Addr{"x": {a}}}, earlierNotes{Gone: map[netip.Addr]time.Duration{a: 2}}},
		{4, cloud.Notes{Gone: map[string][]netip.Addr{"x": {a}, "": {b}}, Deleted: []string{"y"}},
			earlierNotes{map[netip.Addr]time.Duration{a: 4, b: 4}, map[string]time.Duration{"y": 4}}},
		{5, cloud.Notes{Deleted: []string{"y"}}, earlierNotes{GoneENIs: map[string]time.Duration{"y": 5}}},
		{6, cloud.Notes{}, earlierNotes{}},
	} {
		e.follow(step.notes, step.now)
		if diff := cmp.Diff(step.want, e, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("at %d:\n%s", step.now, diff)
		}
	}
}

// asThePreviousReleaseWrote is what the previous release would have written in place of the memory: its
// pkg/agent/memory.go has no notes, but a time for each address and ENI.
func asThePreviousReleaseWrote(text []byte, now time.Duration) []byte {
	var m memory
	if err := json.Unmarshal(text, &m); err != nil {
		panic(err)
	}
	gone, goneENIs := map[netip.Addr]time.Duration{}, map[string]time.Duration{}
	for _, list := range m.Notes.Gone {
		for _, a := range list {
			gone[a] = now
		}
	}
	for _, id := range m.Notes.Deleted {
		goneENIs[id] = now
	}
	if len(gone) == 0 {
		panic(fmt.Sprintf("the agent has noted nothing: %s", text))
	}
	old := map[string]any{}
	if err := json.Unmarshal(text, &old); err != nil {
		panic(err)
	}
	delete(old, "notes")
	old["gone"], old["goneENIs"] = gone, goneENIs
	out, err := json.Marshal(old)
	if err != nil {
		panic(err)
	}
	return out
}
