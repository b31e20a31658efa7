package operator_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/operator"
)

// An operator whose file names another cluster takes the nodes' ENIs for its own by their instance, and marks what it makes with the wrong name: then
// its sweeps, and the other cluster's, delete what is not theirs. The tags tell it with the first describe.
func TestAnOperatorWithTheNameOfAnotherClusterSaysSo(t *testing.T) {
	for own, wrong := range map[string]bool{"blue": false, "green": true, "": false} {
		play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
			w.leadWith(ctx, nil)
			w.begin(ctx)
			for _, a := range w.agents {
				a.set(12) // more than the primary ENI has
			}
			w.until(3*time.Minute, w.isQuiet)
			w.leading().kill()

			var said bytes.Buffer
			var told []operator.Notice
			l := w.leadWith(ctx, func(o *operator.Options) {
				o.Cluster = own
				o.Log = slog.New(slog.NewTextHandler(&said, nil))
				o.Tell = func(n operator.Notice) { told = append(told, n) }
			})
			time.Sleep(30 * time.Minute)
			want := 0
			if wrong {
				want = 1
			}
			if got := strings.Count(said.String(), "cloud.cluster of operator.yaml"); got != want {
				t.Errorf("with the name %q the log says it %d times, want %d:\n%s", own, got, want, &said)
			}
			about := slices.DeleteFunc(told, func(n operator.Notice) bool { return n.Reason != "OtherCluster" })
			if len(about) != want || wrong && (about[0].Name != "node-000" || about[0].Kind != "NodeNetwork" || !about[0].Warning || !strings.Contains(about[0].Message, "blue")) {
				t.Errorf("with the name %q people are told %+v", own, about)
			}
			r, err := l.Report(ctx)
			w.must(err)
			if got := r.OtherCluster; (got == "blue") != wrong || !wrong && got != "" {
				t.Errorf("with the name %q the report says %q", own, got)
			}
			found, err := l.Check(ctx)
			w.must(err)
			at := slices.IndexFunc(found, func(f cloud.Finding) bool { return f.What == "cluster name" })
			switch {
			case own == "" && at >= 0:
				t.Errorf("without a name the check says %+v", found[at])
			case own != "" && (at < 0 || (found[at].Verdict == cloud.Broken) != wrong):
				t.Errorf("with the name %q the check says %+v", own, found)
			}
			why, err := l.Why(ctx, "node-001")
			w.must(err)
			if got := why.Cloud.OtherCluster; (got == "blue") != wrong {
				t.Errorf("with the name %q it says of a node %q", own, got)
			}
		})
	}
}
