package cri

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// all does something for so many pods at once and returns the errors.
func all(n int, do func(i int) error) error {
	errs := make([]error, n)
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() { errs[i] = do(i) })
	}
	work.Wait()
	return errors.Join(errs...)
}

func TestThirtySixSandboxesAtOnceNoneFailsAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	const count = 36
	r := newRegion(t, "burst")
	m := newNode(r, "a", plan{limits: small, coolDown: "1s"})
	m.poolOf(16)
	kernel := m.kernel()
	pods := make([]*pod, count)
	m.must(all(count, func(i int) (err error) {
		pods[i], err = m.try(fmt.Sprintf("pod%d", i))
		return err
	}))
	owner := map[netip.Addr]*pod{}
	for _, p := range pods {
		m.keep(p)
		if owner[p.ip] != nil {
			t.Errorf("two pods have %s", p.ip)
		}
		owner[p.ip] = p
	}
	pool, err := m.pool()
	m.must(err)
	var used []int
	for _, nic := range pool.ENIs {
		used = append(used, nic.Used)
	}
	if diff := cmp.Diff([]int{16, 16, 4}, used); diff != "" {
		t.Errorf("used addresses by ENI, -want +got:\n%s", diff)
	}
	for _, p := range pods[1:] {
		p.reach(internet)
	}
	pods[0].reach(pods[1].ip.String(), pods[count-1].ip.String())
	m.must(all(count, func(i int) error { return pods[i].stop() }))
	for _, p := range pods {
		m.must(p.remove())
	}
	m.poolOf(16)
	eventually(t, "the kernel is as before the first pod", func() error {
		if diff := cmp.Diff(kernel, m.kernel()); diff != "" {
			return errors.New("-before +after:\n" + diff)
		}
		return nil
	})
}

// kernelWords print routing, addresses and our packet filter, without counters. Not
// others' tables: portmap keeps what it makes for its first port.
const kernelWords = `
ip -br link | awk '{print $1}'
ip rule; ip -6 rule
ip route show table all; ip -6 route show table all
ip -o addr | tr -s " \\\\"
ip neigh show nud permanent
nft -s list table inet enipool`

// kernel returns what the node's kernel holds, as sorted text.
func (m *testNode) kernel() string {
	m.t.Helper()
	return strings.Join(slices.Sorted(strings.Lines(m.Run("sh", "-c", kernelWords))), "")
}
