package agent

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// The log tells each failure of the cloud: who reads it is told, once, that it is over.
func TestTheLogTellsOnceThatTheCloudWorksAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		method string // "" for all
		err    *driver.Error
	}{
		"it was not reached":      {"", &driver.Error{Kind: cloud.ErrUnavailable, Detail: "HTTP 503"}},
		"describes are forbidden": {"Interfaces", &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.Unauthorized, Detail: "UnauthorizedOperation"}},
		"requests are forbidden":  {"Assign", &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.Unauthorized, Detail: "UnauthorizedOperation"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logged
				_, n, d := withMeddler(t, sim.NodeSpec{Limits: eni.Limits{ENIs: 1, V4: 200}}, func(w *world, n *testNode, _ *meddled) {
					w.log = slog.New(slog.NewTextHandler(&log, nil))
					n.conf.Cloud.Describe = 20 * time.Second
				})
				defer n.stop()
				n.all(t, time.Minute)
				if got := log.count("works again"); got > 0 {
					t.Fatalf("told %d times before anything failed", got)
				}
				d.refuseIf(func(method, _ string) error {
					if tt.method == "" || method == tt.method {
						return tt.err
					}
					return nil
				})
				for range 40 { // what is free does not do
					_ = n.add()
				}
				sleep(20 * time.Minute)
				if failed, again := log.count("cloud call failed"), log.count("works again"); failed < 3 || again > 0 {
					t.Errorf("while it fails %d lines tell failures and %d that it works", failed, again)
				}
				d.refuseIf(nil)
				n.all(t, 20*time.Minute)
				sleep(20 * time.Minute)
				if got := log.count(`level=INFO msg="cloud call works again"`); got != 1 {
					t.Errorf("told %d times that it works again:\n%s", got, log.text.String())
				}
				if log.count(`"failed for"=2`) != 1 { // 20 and some minutes
					t.Errorf("how long it failed is not told:\n%s", log.text.String())
				}
			})
		})
	}
}
