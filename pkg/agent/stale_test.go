package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

func isUnavailable() error { return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "HTTP 503"} }

// A describe of a quiet node that fails is made again as soon as that of a busy one: until then
// the node is told to hold no more than it has.
func TestAFailedDescribeIsNotLeftForAsLongAsAQuietNodeLeavesThem(t *testing.T) {
	for name, err := range map[string]func() error{"unavailable": isUnavailable,
		"throttled": func() error { return &driver.Error{Kind: cloud.ErrThrottled, Detail: "RequestLimitExceeded"} }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n, d := withMeddler(t, sim.Machine{Limits: large}, func(_ *world, n *testNode, _ *meddled) {
					inCluster(n)
					n.conf.Cloud.Describe = 5 * time.Minute
				})
				defer n.stop()
				n.crowd(8)
				sleep(3 * time.Hour)
				var failed time.Time
				d.refuseIf(func(method, _ string) error {
					if method != "Interfaces" || !failed.IsZero() {
						return nil
					}
					failed = time.Now()
					return err()
				})
				for range 40 {
					if sleep(time.Minute); !failed.IsZero() {
						break
					}
				}
				if failed.IsZero() {
					t.Fatal("no describe for 40 minutes")
				}
				sleep(10 * time.Minute)
				if r, s := n.last(), n.status(); r.Capacity != 110 || s.Problem != "" {
					t.Errorf("%s after one failed describe: report %+v, problem %q", time.Since(failed), r, s.Problem)
				}
			})
		})
	}
}
