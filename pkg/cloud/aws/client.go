package aws

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Options are what a Client may know before it asks. All may be left out.
type Options struct {
	Region   string // "" is what the metadata says, or the SDK's configuration where Instance is set
	Endpoint string // URL of EC2, "" is the region's own
	Metadata string // URL of the instance metadata, "" is http://169.254.169.254
	Instance string // ID of the instance, "" is what the metadata says
	Zone     string // its availability zone, "" is that of its own ENI

	// Where new ENIs may lie: subnets of the node's zone and VPC by ID, and those
	// that have all of the tags. Without either it is the subnet of its own ENI.
	Subnets    []string
	SubnetTags map[string]string

	SecurityGroups []string          // of new ENIs; none: those of the node's own ENI
	Cluster        string            // what Sweep keeps to; ENIs get it as a tag
	Tags           map[string]string // more tags of new ENIs

	Prefixes bool // IPv4 addresses come as /28 prefixes where the instance type can
	IPv6     bool // new ENIs get IPv6 addresses, as a /80 prefix where the type can

	Log *slog.Logger // warnings, nil for none
}

// Client is the Cloud of one instance. Its methods may be called from several
// goroutines.
type Client struct {
	o   Options
	log *slog.Logger

	// What tests change.
	http    aws.HTTPClient     // nil: the SDK's own
	retryer func() aws.Retryer // of reads
	pace    [2]time.Duration   // between two looks at what takes time: at first, and at most
	usual   time.Duration      // what an ENI takes to be attached
	now     func() time.Time   // the wall clock

	connecting chan struct{} // holds one: who makes the session
	attaching  chan struct{} // holds one: who picks a device index
	secrets    secrets

	mu          sync.Mutex
	session     *session
	limits      eni.Limits
	home        home
	subnets     map[string]subnet
	memory      memory
	known       glance
	seen        map[string]sighting   // ENIs that were attached when they were shown last
	first6      map[string]netip.Addr // an ENI's primary IPv6 address, where EC2 does not tell
	born        map[string]birth      // by token: ENIs that are being made
	quarantined []quarantined
	said        map[string]bool
}

var _ cloud.Cloud = (*Client)(nil)

// New returns the Cloud of an instance. It makes no call.
func New(o Options) *Client {
	return &Client{
		o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		retryer: func() aws.Retryer { return retry.NewAdaptiveMode() },
		pace:    [2]time.Duration{500 * time.Millisecond, 3 * time.Second}, usual: 2 * time.Second, now: time.Now,
		connecting: make(chan struct{}, 1), attaching: make(chan struct{}, 1),
		subnets: map[string]subnet{}, memory: memory{}, known: glance{begun: map[string]bool{}}, seen: map[string]sighting{}, first6: map[string]netip.Addr{}, born: map[string]birth{},
		said: map[string]bool{},
	}
}

// sayIf logs a warning about a thing while it holds: once, and again when it held
// not in between.
func (c *Client) sayIf(holds bool, about, warning string, args ...any) {
	c.mu.Lock()
	before := c.said[about]
	c.said[about] = holds
	c.mu.Unlock()
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = c.secrets.redact(err.Error())
		}
	}
	if holds && !before {
		c.log.Warn(warning, args...)
	}
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// enter takes a place that only one may have, unless the context ends before.
func enter(ctx context.Context, place chan struct{}) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case place <- struct{}{}:
		return func() { <-place }, nil
	}
}
