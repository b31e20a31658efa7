package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
)

// waitingPods is how many ADDs wait while as many pods end one by one.
const waitingPods = 100

// waitingRow measures what ADDs that wait cost the pods that end, and whether they are
// served in order of arrival. All addresses are of one ENI and without a cool-down: the
// one that came free first goes to who has waited the longest.
func (b *bench) waitingRow() error {
	cache := filepath.Join(b.temp("waiting"), "node.cache")
	if err := writeCache(cache, waitingPods, 0); err != nil {
		return err
	}
	old, err := newSpaces(b.unique("old"), waitingPods)
	if err != nil {
		return err
	}
	late, err := newSpaces(b.unique("late"), waitingPods)
	if err != nil {
		return err
	}
	c := b.bin.enipool("enipool", cache)
	alone := measure{what: "DEL, nobody waits", command: c.del, unit: "ms"}
	beside := measure{what: fmt.Sprintf("DEL while %d ADDs wait", waitingPods), command: c.del, unit: "ms"}
	served := measure{what: fmt.Sprintf("ADDs served of %d that wait for as many DELs", waitingPods), command: c.add, unit: "ADD"}
	turned := measure{what: "ADDs that got the address of another one's turn", command: c.add, unit: "ADD"}
	direct := measure{what: fmt.Sprintf("CPU of %d ADDs that need not wait", waitingPods), command: c.add, unit: "s"}
	waited := measure{what: fmt.Sprintf("CPU of %d ADDs that wait", waitingPods), command: c.add, unit: "s"}
	rounds := b.pick(3, 1)
	for n := range rounds + 1 { // the first goes uncounted
		b.round("waiting ADDs", n, rounds)
		w := &waitingRound{bench: b, cache: cache, conf: patientConf(cache)}
		if err := w.run(old, late, n); err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		alone.values, beside.values = append(alone.values, w.alone...), append(beside.values, w.beside...)
		served.add(float64(w.served))
		turned.add(float64(w.turned))
		direct.add(w.direct.Seconds())
		waited.add(w.waited.Seconds())
	}
	b.report.add([]measure{alone, beside, served, turned, direct, waited},
		target{of: beside, ref: &alone, want: 1.3},
		target{of: served, want: waitingPods, atLeast: true},
		target{of: worst(turned), want: 0},
		target{of: waited, ref: &direct, shown: true})
	return nil
}

// patientConf lets an ADD wait for as long as it may.
func patientConf(cache string) string {
	return strings.Replace(enipoolConf(cache), "{", `{"waitForAddress":"100s",`, 1)
}

// waitingRound fills the pool and empties it twice: with nobody waiting, and with ADDs
// that wait for all of it.
type waitingRound struct {
	*bench
	cache, conf    string
	alone, beside  []float64 // milliseconds of each DEL
	served, turned int
	direct, waited time.Duration // of CPU
}

// pendingAdd is an ADD that runs.
type pendingAdd struct {
	*exec.Cmd
	out, log bytes.Buffer
}

func (w *waitingRound) run(old, late []space, round int) error {
	first := round * 2 * waitingPods
	if _, err := w.fill(old, first); err != nil {
		return err
	}
	err := w.empty(old, first, func(ms float64) { w.alone = append(w.alone, ms) })
	if err != nil {
		return err
	}
	w.direct = 0 // now with everything warm
	turns, err := w.fill(old, first)
	if err != nil {
		return err
	}
	var queue []*pendingAdd
	for i, pod := range late {
		a, err := w.wait(pod, first+waitingPods+i, i)
		if err != nil {
			return err
		}
		queue = append(queue, a)
	}
	err = w.empty(old, first, func(ms float64) { w.beside = append(w.beside, ms) })
	if err != nil {
		return err
	}
	for i, a := range queue {
		err := a.Wait()
		w.waited += a.ProcessState.UserTime() + a.ProcessState.SystemTime()
		got, parseErr := addressOf(a.out.Bytes())
		switch err := cmp.Or(err, parseErr); {
		case err != nil:
			w.progress("a waiting ADD failed: %v: %s%s", err, &a.out, &a.log)
		case got != turns[i]:
			w.turned++
			fallthrough
		default:
			w.served++
		}
	}
	return w.empty(late, first+waitingPods, func(float64) {})
}

// fill starts a pod in each space and returns their addresses.
func (w *waitingRound) fill(pods []space, first int) (got []netip.Addr, err error) {
	for i, pod := range pods {
		a := w.start(pod, first+i)
		err := a.Run()
		if err != nil {
			return nil, fmt.Errorf("ADD: %w: %s%s", err, &a.out, &a.log)
		}
		w.direct += a.ProcessState.UserTime() + a.ProcessState.SystemTime()
		addr, err := addressOf(a.out.Bytes())
		if err != nil {
			return nil, err
		}
		got = append(got, addr)
	}
	return got, nil
}

// empty ends the pods one by one.
func (w *waitingRound) empty(pods []space, first int, took func(ms float64)) error {
	for i, pod := range pods {
		ms, _, err := w.bin.attach("enipool", "DEL", container(first+i), "eth0", pod, w.conf).run()
		if err != nil {
			return err
		}
		took(ms)
	}
	return nil
}

func (w *waitingRound) start(pod space, n int) *pendingAdd {
	p := w.bin.attach("enipool", "ADD", container(n), "eth0", pod, w.conf)
	a := &pendingAdd{Cmd: exec.Command(p.path)}
	a.Env, a.Stdin, a.Stdout, a.Stderr = p.env, strings.NewReader(p.stdin), &a.out, &a.log
	return a
}

// wait starts an ADD and returns when it is in the queue behind the others.
func (w *waitingRound) wait(pod space, n, others int) (*pendingAdd, error) {
	a := w.start(pod, n)
	if err := a.Start(); err != nil {
		return nil, err
	}
	c := nodecache.Cache{Path: w.cache}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		// What was there stays; only a name more is of interest, and no place is touched.
		if names, _ := os.ReadDir(c.Path + ".waiters"); len(names) > others {
			return a, nil
		}
	}
	return nil, fmt.Errorf("ADD number %d does not wait: %s%s", others, &a.out, &a.log)
}

// addressOf reads the address out of a result.
func addressOf(result []byte) (netip.Addr, error) {
	var r struct {
		IPs []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(result, &r); err != nil || len(r.IPs) != 1 {
		return netip.Addr{}, fmt.Errorf("read result %s: %w", result, err)
	}
	return r.IPs[0].Address.Addr(), nil
}
