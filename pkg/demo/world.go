package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/test/lab"
)

// What the instances of the demonstration may carry: an ENI holds a batch.
const (
	maxENIs = 4
	perENI  = 16 // without the primary
)

// How long the cloud takes, so that it can be seen.
const (
	assignTime = 600 * time.Millisecond
	createTime = 2 * time.Second
	otherTime  = 50 * time.Millisecond
)

// vpcRange is the range of the VPC.
var vpcRange = lab.V4

// internet is where the simulated VPC ends.
var internet = netip.MustParseAddr(lab.Internet4)

// labNode is a node of the demonstration.
type labNode struct {
	name     string
	strategy string // of its agent
	ns       isolate.Namespace
	cache    nodecache.Cache
	agent    *agent // the one that runs, or ran last
}

// newNodes returns the nodes in the order of all tables. They differ in nothing but the strategy.
func newNodes() []*labNode {
	list := []*labNode{{name: "n1", strategy: "equation"}, {name: "n2", strategy: "reactive"}}
	for _, n := range list {
		n.cache.Path = "/run/enipool-" + n.name + "/node.cache"
	}
	return list
}

// buildVPC makes the VPC and its nodes, as the cloud would hand them over: each
// with its primary ENI, which DHCP has set up, in a subnet of its own.
func buildVPC(nodes []*labNode) (*lab.VPC, error) {
	v, err := lab.Open("demo", sim.Options{Latency: map[string]sim.Latency{
		"": {Base: otherTime}, sim.ActAssign: {Base: assignTime}, sim.ActUnassign: {Base: assignTime},
		sim.ActAttach: {Base: createTime}, sim.ActDetach: {Base: assignTime},
	}}, vpcRange)
	if err != nil {
		return nil, err
	}
	for i, n := range nodes {
		subnet := sim.Subnet{ID: fmt.Sprintf("subnet-%d", i+1), V4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 0}), 24)}
		n.ns, err = v.AddNode(sim.NodeSpec{Name: n.name, Limits: eni.Limits{ENIs: maxENIs, V4: perENI + 1},
			Subnet: subnet.ID, New: []string{subnet.ID}}, subnet)
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
	}
	return v, nil
}

// folder is where the node's files are.
func (n *labNode) folder() string { return filepath.Dir(n.cache.Path) }

func (n *labNode) node() node.Node { return node.Node{Cache: n.cache, Now: nodecache.SinceBoot} }

// nodeState returns a copy of the node's state.
func (n *labNode) nodeState(ctx context.Context) (s ipam.State, err error) {
	err = n.cache.View(ctx, func(st *ipam.State) error {
		s = *st.Clone()
		return nil
	})
	return s, err
}

// status returns what the node's agent said last, the zero Status if it has not
// said anything yet.
func (n *labNode) status() status.Status {
	s, _ := status.Beside(n.cache.Path).Read()
	return s
}

// hasSettled tells whether the node has that many addresses, and its agent neither
// wants to change that nor waits for the cloud.
func (n *labNode) hasSettled(ctx context.Context, addresses int) bool {
	state, err := n.nodeState(ctx)
	s := n.status()
	return err == nil && len(state.Addresses) == addresses && s.Ready && s.Target == addresses &&
		s.Addresses.Attached == addresses && len(s.InFlight) == 0
}

// checkENIOrder returns an error if a pod got an address of a later ENI between two moments while
// an earlier ENI had a free one in both. ADDs must take addresses in ENI order, or the newest ENIs
// would never be idle and could not be deleted.
func checkENIOrder(before, after ipam.State) error {
	was := map[netip.Addr]eni.Address{}
	for _, a := range before.Addresses {
		was[a.Addr] = a
	}
	free := ""
	for _, nic := range after.ENIs {
		inside := slices.DeleteFunc(slices.Clone(after.Addresses), func(a eni.Address) bool { return a.ENI != nic.Index })
		for _, a := range inside {
			if a.State == eni.Used && was[a.Addr].State != eni.Used && free != "" {
				return fmt.Errorf("%s got an address of %s while %s had a free one", a.Owner.PodName(), nic.ID, free)
			}
		}
		// Free in both: an address that was freed between them came too late for the pod.
		for _, a := range inside {
			if old, known := was[a.Addr]; known && a.State == eni.Free && old.State == eni.Free && free == "" {
				free = nic.ID
			}
		}
	}
	return nil
}
