package main

import (
	"fmt"
	"sync"
	"time"
)

// parallelPods is how many pods start at once.
const parallelPods = 100

// parallelRow starts all ADDs at once and waits for the last one.
func (b *bench) parallelRow() error {
	pods, err := newSpaces(b.unique("burst"), parallelPods)
	if err != nil {
		return err
	}
	list := []contender{
		b.bin.enipool("enipool", b.node.cache),
		b.bin.ptp("ptp+host-local", b.temp("host-local-burst"), ptpSubnet),
	}
	rates, fails, err := b.bursts(pods, list)
	if err != nil {
		return err
	}
	b.report.add(append(rates, fails...),
		target{of: rates[0], ref: &rates[1], want: 3, atLeast: true},
		target{of: worst(fails[0]), want: 0})
	return nil
}

// bursts lets each contender attach all pods at once, in turn and several times. A
// first round goes uncounted.
func (b *bench) bursts(pods []space, list []contender) (rates, fails []measure, err error) {
	rates, fails = make([]measure, len(list)), make([]measure, len(list))
	for i, c := range list {
		rates[i] = measure{what: fmt.Sprintf("%d ADDs at once, %s", len(pods), c.name), command: c.add, unit: "ADD/s"}
		fails[i] = measure{what: rates[i].what + ", failed", command: c.add, unit: "ADD"}
	}
	for n := range b.longRuns() + 1 {
		b.round(fmt.Sprintf("%d ADDs at once", len(pods)), n, b.longRuns())
		for i, c := range list {
			seconds, failed := burst(c.attach, pods, n)
			if _, left := burst(c.detach, pods, n); len(left) > 0 {
				return nil, nil, fmt.Errorf("DEL %s: %w", c.name, left[0])
			}
			if n > 0 {
				rates[i].add(float64(len(pods)) / seconds)
				fails[i].add(float64(len(failed)))
			}
			if len(failed) > 0 {
				b.progress("%s: %d of %d failed, one with: %v", c.name, len(failed), len(pods), failed[0])
			}
		}
	}
	return rates, fails, nil
}

// worst keeps only the largest value: one failure in one round is a failure.
func worst(m measure) measure {
	top := m
	top.values = []float64{0}
	for _, v := range m.values {
		top.values[0] = max(top.values[0], v)
	}
	return top
}

// burst calls all pods at once and returns after how many seconds the last one
// was ready.
func burst(call func(space, int) (float64, error), pods []space, round int) (seconds float64, failed []error) {
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	gate := make(chan struct{})
	for i, pod := range pods {
		all.Go(func() {
			<-gate
			_, errs[i] = call(pod, round*len(pods)+i)
		})
	}
	start := time.Now()
	close(gate)
	all.Wait()
	seconds = time.Since(start).Seconds()
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return seconds, failed
}
