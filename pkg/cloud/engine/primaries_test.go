package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Where pages lack primary ENIs and no pod uses one, each is described by itself now and then: else nobody would ever learn that its security groups are
// others, which the node's ENIs are to have.
func TestAHiddenPrimaryENIIsDescribedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{})
		primary := ""
		w.View(0, func(tx *sim.Tx) {
			for _, i := range tx.Interfaces() {
				if i.Attachment != nil && i.Attachment.Instance == "i-2" {
					primary = i.ID
				}
			}
		})
		is := func(group string) {
			t.Helper()
			must(t, w.Update(func(tx *sim.Tx) error { return tx.Modify(primary, sim.Edit{Groups: []string{group}}) }))
		}
		w.AddGroup(sim.Group{ID: "sg-old", Name: "sg-old"})
		w.AddGroup(sim.Group{ID: "sg-new", Name: "sg-new"})
		is("sg-old")
		r := w.region(engine.Options{Cluster: "blue"})
		nodes := []string{"i-1", "i-2"}
		for n := 3; n <= 400; n++ {
			id := fmt.Sprintf("i-%d", n)
			_, err := w.AddInstance(sim.Instance{ID: id, Type: "small", Subnet: "a"})
			must(t, err)
			nodes = append(nodes, id)
		}
		for _, id := range nodes {
			_, err := r.Node(cloud.Instance{ID: id}).Limits(t.Context())
			must(t, err)
		}
		look := func() (requests int) {
			t.Helper()
			before := w.Calls()[sim.ActDescribe]
			views, err := r.Look(t.Context(), nil)
			must(t, err)
			for id, v := range views {
				if v.Err != nil || len(v.Interfaces) == 0 || v.Interfaces[0].Index != 0 {
					t.Fatalf("%s: %+v", id, v)
				}
			}
			if len(views) != len(nodes) {
				t.Fatalf("%d views", len(views))
			}
			return w.Calls()[sim.ActDescribe] - before
		}
		look()
		made, err := r.Node(cloud.Instance{ID: "i-2"}).CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1})
		must(t, err)
		time.Sleep(time.Minute)
		look()
		is("sg-new")
		told, most := time.Duration(0), 0
		for began := time.Now(); told == 0 && time.Since(began) < 6*time.Hour; {
			time.Sleep(5 * time.Minute)
			most = max(most, look())
			if r.OutOfStep("i-2")[made.ID] == "SetGroups" {
				told = time.Since(began)
			}
		}
		// 400 nodes, one a minute.
		if told == 0 || told > 4*time.Hour {
			t.Errorf("it is known after %s", told)
		}
		if most > 10 {
			t.Errorf("a look takes %d requests", most)
		}
		t.Logf("after %s, %d requests at most", told, most)
	})
}
