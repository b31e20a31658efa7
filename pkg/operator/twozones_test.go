package operator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// The cloud-controller-manager of Baidu's clusters labels a Node of zone cn-bj-d with zoneD; its API says cn-bj-d of subnets. Both are one zone.
func TestAZoneMayHaveTwoNames(t *testing.T) {
	s := setup{nodes: 1, likeBCE: true, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16"), Zone: "cn-bj-d"}}}
	play(t, s, func(ctx context.Context, w *world) {
		w.traits.Zone = func(zone string) string { // as that of package bce
			zone = strings.ToLower(zone)
			if letter, is := strings.CutPrefix(zone, "zone"); is {
				return letter
			}
			return zone[strings.LastIndexByte(zone, '-')+1:]
		}
		a := w.agents[0]
		w.store.changeNode(a.name, func(n *operator.Node) { n.Zone = "zoneD" })
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(20) // needs another ENI
		time.Sleep(10 * time.Minute)
		if n := w.store.node(a.name); len(a.used()) < 20 {
			t.Errorf("%d of 20 pods have addresses: %+v", len(a.used()), n.Status.Causes)
		}
	})
}
