package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// bothReleases serves the account to agents of this release and of the previous one, whose
// simulated cloud was asked for whole methods of cloud.Cloud.
type bothReleases struct {
	account *sim.Account
	now     http.Handler
	heeds   bool // it does what it was asked for when who asked is gone
	mu      sync.Mutex
	nodes   map[string]cloud.Cloud // of agents of the previous release
}

func newBothReleases(a *sim.Account, heeds bool) *bothReleases {
	return &bothReleases{account: a, heeds: heeds, now: a.Handler(), nodes: map[string]cloud.Cloud{}}
}

// previousCall is a request of the previous release. Those of this one have arguments.
type previousCall struct {
	Method, Node, ENI string
	Family            eni.Family
	Count             int
	Addresses         []netip.Addr
	Create            cloud.Create
	Args              json.RawMessage
}

type previousAnswer struct {
	Limits     eni.Limits        `json:"limits,omitzero"`
	Interfaces []cloud.Interface `json:"interfaces,omitempty"`
	Subnets    []cloud.Subnet    `json:"subnets,omitempty"`
	Interface  cloud.Interface   `json:"interface,omitzero"`
	Addresses  []netip.Addr      `json:"addresses,omitempty"`
	Error      *previousError    `json:"error,omitempty"`
}

type previousError struct {
	Object     string        `json:"object,omitempty"`
	Kind       string        `json:"kind"`
	Detail     string        `json:"detail,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

func (b *bothReleases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var c previousCall
	if err != nil || json.Unmarshal(body, &c) != nil || c.Args != nil {
		if b.heeds {
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.now.ServeHTTP(w, r)
		return
	}
	out := b.do(r.Context(), b.node(c), c)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // who does not get the answer knows it
}

// node is the node's cloud. An agent that starts asks for its limits: it remembers nothing.
func (b *bothReleases) node(c previousCall) cloud.Cloud {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[c.Node] == nil || c.Method == "Limits" {
		o := b.account.NodeOptions(c.Node)
		o.Times = driver.Times{Poll: 100 * time.Millisecond, Slow: time.Second, Settle: sim.RemoteSettle}
		b.nodes[c.Node] = engine.New(b.account.NodeDriver(c.Node), o)
	}
	return b.nodes[c.Node]
}

func (b *bothReleases) do(ctx context.Context, n cloud.Cloud, c previousCall) (out previousAnswer) {
	var err error
	switch c.Method {
	case "Limits":
		out.Limits, err = n.Limits(ctx)
	case "Interfaces":
		out.Interfaces, err = n.Interfaces(ctx)
	case "Subnets":
		out.Subnets, err = n.Subnets(ctx)
	case "CreateInterface":
		out.Interface, err = n.CreateInterface(ctx, c.Create)
	case "AssignAddresses":
		out.Addresses, err = n.AssignAddresses(ctx, c.ENI, c.Family, c.Count)
	case "UnassignAddresses":
		err = n.UnassignAddresses(ctx, c.ENI, c.Addresses)
	case "DeleteInterface":
		err = n.DeleteInterface(ctx, c.ENI)
	}
	if e, failed := errors.AsType[*cloud.Error](err); failed {
		out.Error = &previousError{Object: e.Object, Kind: e.Kind.Error(), Detail: e.Detail, RetryAfter: e.RetryAfter}
	}
	return out
}
