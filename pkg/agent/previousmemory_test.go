package agent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
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
