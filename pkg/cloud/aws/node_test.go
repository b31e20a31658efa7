package aws

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
)

// node is the engine over a driver, as an agent has it, and what tests change of both.
type node struct {
	*engine.Node
	d     *Driver
	ear   *deaf
	clock *cloudtest.Clock
}

// newNode returns a node that waits less than for a real cloud. Its connections can be
// refused.
func newNode(d *Driver, o engine.Options) *node {
	n := &node{d: d, ear: quicken(d), clock: &cloudtest.Clock{}}
	o.Clock = n.clock
	o.Times = driver.Times{Poll: time.Millisecond, Slow: 100 * time.Millisecond, Usual: 2 * time.Millisecond, Settle: 300 * time.Millisecond}
	n.Node = engine.New(d, o)
	return n
}

// quicken lets the SDK wait less than for a real cloud.
func quicken(d *Driver) *deaf {
	d.retryer = func() aws.RetryerV2 {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	ear := &deaf{to: map[string]int{}, client: &http.Client{Transport: &http.Transport{}}}
	d.http = ear
	return ear
}

// open returns the node of an instance.
func (s *site) open(t *testing.T, instance string, o engine.Options) (*node, *deaf) {
	t.Helper()
	n := newNode(New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata(instance)), Log: o.Log}), o)
	return n, n.ear
}
