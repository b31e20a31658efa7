package nodefiles

import (
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/status"
)

// Cluster is what a Publisher has to do with the node's cluster.
type Cluster struct {
	Offers func() bool        // whether the Node shows addresses for pods
	Report func(kube.Network) // takes whether pods can have networks
}

// TellCluster has the publisher wait for the cluster, and tell it. It is called before the first tick.
func (p *Publisher) TellCluster(c Cluster) { p.cluster = &c }

const (
	// offerWait is how long the network configuration waits for the Node to show addresses: a node that turns Ready before
	// is complete to an autoscaler without the resource. An API server that takes no such write must not keep a node from its pods.
	offerWait = 30 * time.Second

	// lostFor is how long there must be no address, or no network configuration, until the cluster hears that pods can't have
	// networks: an agent that starts has looked by then.
	lostFor = 30 * time.Second
)

// The reasons of the condition NetworkReady.
const (
	networkServed   = "PodsCanStart"
	noAddress       = "NoAddress"
	noConfiguration = "NoNetworkConfiguration"
)

// network is what is known of whether pods can have networks.
type network struct {
	readyAt time.Time // when pods could first get addresses, zero for not yet
	waited  bool      // the configuration did not wait for the Node any longer
	known   bool      // it was looked whether the configuration is in place
	wrong   string    // why it is not, "" where it is or is a person's
	lost    time.Time // since when pods can't have networks, zero while they can
}

// looked takes in how a look at the configuration has ended.
func (n *network) looked(err error) {
	if n.known, n.wrong = true, ""; err != nil && !errors.Is(err, install.ErrNotStaged) {
		n.wrong = err.Error()
	}
}

// mayPublish tells whether the network configuration may turn the node Ready: the Node shows addresses for pods, or none of its
// cluster takes them in time.
func (p *Publisher) mayPublish(now time.Time) bool {
	if p.cluster == nil || p.network.known || p.network.waited || p.cluster.Offers() {
		return true
	}
	if p.network.readyAt.IsZero() {
		p.network.readyAt = now
	}
	if now.Sub(p.network.readyAt) < offerWait {
		return false
	}
	p.network.waited = true
	p.log.Warn("the Node shows no addresses for pods yet, and its network configuration waits no longer", "resource", string(kube.Resource),
		"todo", "the agent's log says why the API server does not take it")
	return true
}

// tellNetwork tells the cluster whether pods can have networks, once that is known.
func (p *Publisher) tellNetwork(s status.Status) {
	if p.cluster == nil {
		return
	}
	if told, is := p.network.judge(s); is {
		p.cluster.Report(told)
	}
}

// judge returns what to tell after a tick, and whether anything is known. That all addresses are in use is no failure of the network.
func (n *network) judge(s status.Status) (told kube.Network, is bool) {
	switch {
	case s.Addresses.Attached == 0:
		told = kube.Network{Reason: noAddress, Message: "the node has no address for pods, or its node cache can't be used"}
	case !n.known:
		return told, false
	case n.wrong != "":
		told = kube.Network{Reason: noConfiguration, Message: n.wrong}
	default:
		n.lost = time.Time{}
		return kube.Network{Ready: true, Reason: networkServed, Message: "pods have got addresses, and the network configuration is in place"}, true
	}
	if n.lost.IsZero() {
		n.lost = s.Written
	}
	return told, s.Written.Sub(n.lost) >= lostFor
}
