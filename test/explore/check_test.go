package explore

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// check fails on what must hold in each state.
func (w *world) check() {
	at, ours, tokens := map[netip.Addr]string{}, 0, map[string]string{}
	for _, i := range w.now() {
		for _, a := range append([]netip.Addr{i.V4}, i.Singles...) {
			if other, taken := at[a]; taken {
				w.fail("address %s is on ENI %s and on ENI %s", a, other, i.ID)
			}
			at[a] = ""
			if i.Instance == instance && i.State == driver.Attached {
				at[a] = i.ID
			}
		}
		if i.Primary {
			continue
		}
		if other, twice := tokens[i.Mark.Token]; twice && i.Mark.Token != "" {
			w.fail("ENIs %s and %s are of one intent", other, i.ID)
		}
		tokens[i.Mark.Token] = i.ID
		ours++
	}
	if 1+ours > enis {
		w.fail("%d ENIs were made for an instance that may have %d besides its primary one", ours, enis-1)
	}
	w.checkCache(at)
	w.checkPods(at)
}

// checkCache compares what the node cache may give to pods with the cloud.
func (w *world) checkCache(at map[netip.Addr]string) {
	if w.cache == nil {
		return
	}
	for _, line := range w.cache.Addresses {
		on, _ := w.cache.Interface(line.ENI)
		switch {
		case line.Lost:
			w.fail("%s is lost in the node cache, and nobody took it away", line.Addr)
		case line.State != eni.Releasing && at[line.Addr] != on.ID:
			w.fail("%s is %s on ENI %s in the node cache, and in the cloud on %q", line.Addr, line.State, on.ID, at[line.Addr])
		}
	}
}

// checkPods compares what pods have with the cloud.
func (w *world) checkPods(at map[netip.Addr]string) {
	owner := map[netip.Addr]int{}
	for i, p := range w.pods {
		if !p.addr.IsValid() {
			continue
		}
		if other, twice := owner[p.addr]; twice {
			w.fail("pods %d and %d have address %s", other, i, p.addr)
		}
		owner[p.addr] = i
		if at[p.addr] != p.on {
			w.fail("pod %d has address %s of ENI %s, which is on %q", i, p.addr, p.on, at[p.addr])
		}
		if len(w.cache.OwnedBy(p.owner.Key)) != 1 {
			w.fail("the node cache has lost pod %d with its address %s", i, p.addr)
		}
	}
}

// quiet is how long nothing may have changed in the cloud when all has settled.
const quiet = 5 * time.Minute

// settled tells what is not as it should be when the faults have stopped.
func (w *world) settled() error {
	inCache := map[netip.Addr]bool{}
	if w.cache == nil {
		return fmt.Errorf("there is no node cache")
	}
	for _, line := range w.cache.Addresses {
		inCache[line.Addr] = true
		if line.State == eni.Releasing {
			return fmt.Errorf("%s is releasing", line.Addr)
		}
	}
	known := map[string]bool{}
	for _, i := range w.cache.ENIs {
		known[i.ID] = true
	}
	for _, i := range w.now() {
		if i.State != driver.Attached || !known[i.ID] {
			return fmt.Errorf("ENI %s is leaked: attached to %q, in the node cache: %v", i.ID, i.Instance, known[i.ID])
		}
		for _, a := range i.Singles {
			if !inCache[a] {
				return fmt.Errorf("%s is on ENI %s and not in the node cache", a, i.ID)
			}
		}
		delete(known, i.ID)
	}
	for id := range known {
		return fmt.Errorf("ENI %s is in the node cache and nowhere else", id)
	}
	free := len(inCache)
	for i, p := range w.pods {
		if p.owner != nil && !p.addr.IsValid() {
			return fmt.Errorf("pod %d has no address", i)
		}
		if p.owner != nil {
			free--
		}
	}
	if free < 1 || free > 2 { // besteffort keeps PreAllocate, and lets one more be
		return fmt.Errorf("%d addresses are free, 1 or 2 should be", free)
	}
	var saved remembered
	if json.Unmarshal(w.saved, &saved) != nil || len(saved.Creates)+len(saved.Leaving) > 0 {
		return fmt.Errorf("the agent's memory has unfinished business: %s", w.saved)
	}
	if w.clock.now-w.versions[len(w.versions)-1].at < quiet {
		return fmt.Errorf("the cloud was changed %s ago", w.clock.now-w.versions[len(w.versions)-1].at)
	}
	return nil
}
