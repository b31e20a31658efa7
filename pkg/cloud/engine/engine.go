// Package engine makes a cloud.Cloud of a driver's half-operations. Every policy about ENIs
// is here: how the ENI of a token is found again; how an ENI is made, filled, attached and
// undone, and finished by a later call; how long to wait for states; which calls override
// answers that lag; prefixes and single addresses; what is left out because it can't be
// right; which leaked ENIs are deleted.
//
// It starts no goroutine and holds no lock while it waits, so that it runs in simulations.
package engine

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// Options are what the configuration says of a node's ENIs. All may be left out.
type Options struct {
	// Where new ENIs may lie: subnets of the node's zone and VPC by ID, and those
	// that have all of the tags. Without either it is the subnet of its primary ENI.
	Subnets    []string
	SubnetTags map[string]string

	SecurityGroups []string          // of new ENIs; none: those of the node's primary ENI
	Cluster        string            // what Sweep keeps to; ENIs are marked with it
	Tags           map[string]string // more tags of new ENIs

	Prefixes bool       // IPv4 addresses come as prefixes where the instance can
	IPv6     bool       // new ENIs get IPv6 addresses, as a prefix where the instance can
	NoIPv4   bool       // pods get no IPv4 addresses: of a subnet's only new ENIs take some
	Limits   eni.Limits // what is not 0 here wins over what the cloud says

	Zone  string       // of the node, "" is that of its primary ENI
	Times driver.Times // what is not 0 here wins over the driver's
	Clock Clock        // nil: the machine's
	// Random returns a duration from 0 to most; nil: by chance. It must not block.
	Random func(most time.Duration) time.Duration
	// Token makes the token of a call that is made once: 1 to 64 visible characters that no
	// other call has had. nil: by chance.
	Token func() string
	// Admit is asked before each request to the cloud, with the action that the cloud counts
	// it as, and may block. If it returns an error, the request is not made. nil: all pass.
	Admit func(ctx context.Context, action string) error
	Limit time.Duration // how long an admitted request may take, 0 for what ctx says
	Log   *slog.Logger  // warnings, nil for none
}

// Node is the Cloud of one instance: alone, or one of a Region's. Its methods may be called
// from several goroutines.
type Node struct {
	d     driver.Driver
	t     driver.Traits
	o     Options
	clock Clock
	log   *slog.Logger
	born  time.Time // what calls did before that, an earlier process knows
	known *ranges   // of subnets

	mu          sync.Mutex
	self        driver.Self // Instance is "" until it is known
	shape       driver.Shape
	home        home
	own         driver.Interface // its primary ENI, as it was shown last
	memory      memory
	quarantined []cloud.Quarantined
	said        map[string]bool
	doomed      map[string]time.Time // by ID: ENIs that a Sweep has found without an instance
	askedLast   string               // the instance that the last Sweep asked for last
	asks        map[string]int       // how often a Sweep has asked about each instance since all were asked about twice
	listed      int                  // ENIs that the cloud told the last Sweep of
}

var (
	_ cloud.Cloud = (*Node)(nil)
	_ cloud.Sizer = (*Node)(nil)
)

// New returns the Cloud of the instance that the driver's Self is. It makes no call.
func New(d driver.Driver, o Options) *Node {
	return newNode(d, o, newRanges())
}

func newNode(cloudDriver driver.Driver, options Options, known *ranges) *Node {
	traits := cloudDriver.Traits()
	// Drivers leave out what is as everywhere; tests and simulations set their own.
	times := &traits.Times
	times.Poll = cmp.Or(options.Times.Poll, times.Poll, 500*time.Millisecond)
	times.Slow = cmp.Or(options.Times.Slow, times.Slow, 3*time.Second)
	times.Usual = cmp.Or(options.Times.Usual, times.Usual)
	times.Settle = cmp.Or(options.Times.Settle, times.Settle, 10*time.Second)
	times.Wait = cmp.Or(options.Times.Wait, times.Wait, 2*time.Minute)
	if options.Clock == nil {
		options.Clock = Wall{}
	}
	if options.Random == nil {
		options.Random = func(most time.Duration) time.Duration { return rand.N(most + 1) }
	}
	if options.Token == nil {
		options.Token = crand.Text
	}
	if options.Admit != nil {
		cloudDriver = admitted{cloudDriver, traits, options.Admit, options.Limit}
	}
	return &Node{d: cloudDriver, t: traits, o: options, clock: options.Clock, born: options.Clock.Now(), log: cmp.Or(options.Log, slog.New(slog.DiscardHandler)),
		known: known, memory: newMemory(), said: map[string]bool{}, doomed: map[string]time.Time{}}
}

// findSelf returns the instance. The first call asks for it; if that fails, the next.
func (n *Node) findSelf(ctx context.Context) (driver.Self, error) {
	n.mu.Lock()
	self := n.self
	n.mu.Unlock()
	if self.Instance != "" {
		return self, nil
	}
	if err := ctx.Err(); err != nil {
		return driver.Self{}, errorf(cloud.ErrUnavailable, "given up before the call: %v", err)
	}
	self, err := n.d.Self(ctx)
	if err != nil {
		return driver.Self{}, n.orNamed(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.self = self
	return self, nil
}

// orNamed adds to the error of a metadata service that does not answer the keys of agent.yaml
// that make it unnecessary: where there is no such service, nothing else helps.
func (n *Node) orNamed(err error) error {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok || e.Kind != cloud.ErrUnavailable || n.t.Keys.Self == "" {
		return err
	}
	out := *e
	out.Detail += "; without a metadata service set " + n.t.Keys.Self + " in agent.yaml"
	return &out
}

// sayIf logs a warning when it begins to hold. It logs it again only if it has ceased to hold
// in between.
func (n *Node) sayIf(holds bool, about, warning string, args ...any) {
	n.mu.Lock()
	before := n.said[about]
	n.said[about] = holds
	n.mu.Unlock()
	if holds && !before {
		n.log.Warn(warning, args...)
	}
}

// primaryV6 chooses which of an ENI's IPv6 addresses counts as its primary one, if neither the
// cloud nor the mark tells: the one that it chose before, else the first.
func (n *Node) primaryV6(id string, addrs []netip.Addr) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.memory.primary6[id]
	if known && slices.Contains(addrs, before) {
		return before
	}
	n.memory.primary6[id] = addrs[0]
	return addrs[0]
}
