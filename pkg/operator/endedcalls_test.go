package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/operator"
)

// recent returns the last calls of the operator that leads.
func recent(ctx context.Context, t *testing.T, w *world) []operator.Ended {
	t.Helper()
	r, err := w.leading().Report(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r.Recent
}

// The last calls are told, the newest first, and no more than a page can hold.
func TestTheLastCallsAreTold(t *testing.T) {
	play(t, setup{nodes: 4}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		kinds := map[string]int{}
		for _, pods := range []int{25, 3, 30, 2, 28, 1, 30, 2} {
			for _, a := range w.agents {
				a.set(pods)
			}
			w.until(5*time.Minute, w.isQuiet)
			list := recent(ctx, t, w)
			for i, e := range list {
				kinds[e.What]++
				if e.Node == "" || e.Object == "" || e.At.After(time.Now()) || i > 0 && e.At.After(list[i-1].At) {
					t.Errorf("%d: %+v", i, e)
				}
				if came := e.What == "create" || e.What == "assign"; e.Error == "" && came != (e.Addresses > 0) {
					t.Errorf("%+v", e)
				}
			}
			if len(list) > 30 {
				t.Errorf("%d calls are remembered", len(list))
			}
		}
		if kinds["create"] == 0 || kinds["assign"]+kinds["release"]+kinds["delete"] == 0 {
			t.Errorf("calls: %v", kinds)
		}
		w.check()
	})
}
