package sim

import (
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/eni"
)

// Node is the cloud of one node of an account, as a process on it sees it: the engine over
// the account's half-operations.
type Node struct {
	*engine.Node
	a    *Account
	name string
}

// Node returns the cloud of the node of that name as a new process sees it, which
// remembers nothing. The calls of one that is not in the account fail with ErrNotFound.
func (a *Account) Node(name string) *Node {
	return &Node{engine.New(a.NodeDriver(name), a.NodeOptions(name)), a, name}
}

// NodeDriver returns the account as the driver of a node.
func (a *Account) NodeDriver(name string) *Driver {
	a.lock()
	defer a.mu.Unlock()
	return a.Driver(name, a.nodes.byName[name].traits(a.o))
}

// NodeOptions returns the options of an engine over NodeDriver.
func (a *Account) NodeOptions(name string) engine.Options {
	a.lock()
	defer a.mu.Unlock()
	l := a.nodes.byName[name].Limits
	return engine.Options{SubnetTags: AnySubnet(), Prefixes: l.V4Block.Size > 0, IPv6: l.V6 > 0,
		Clock: a.o.Clock, Random: a.randomUpTo, Token: a.nextToken}
}

// traits returns how the account behaves towards the node.
func (s NodeSpec) traits(o Options) driver.Traits {
	t := LikeEC2()
	if s.LikeBCE {
		t = LikeBCE()
	}
	if t.Bits4 > 0 {
		t.Bits4, t.Bits6 = o.blockBits(eni.IPv4), 0
	}
	if t.Bits4 > 0 && s.Limits.V6Block.Size > 0 {
		t.Bits6 = o.blockBits(eni.IPv6)
	}
	return t
}

// randomUpTo returns a duration from 0 to most, by the account's seed.
func (a *Account) randomUpTo(most time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.upTo(most)
}

// nextToken returns a token that no other call of a node of this account has had. Each run has the
// same tokens.
func (a *Account) nextToken() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	return fmt.Sprintf("call-%08x", a.asked)
}

// tagNew is on subnets, as a node's driver shows them, that its new ENIs may lie in.
const tagNew = "enipool/new"

// AnySubnet selects the subnets that a node's new ENIs may lie in, as it was added.
func AnySubnet() map[string]string { return map[string]string{tagNew: "yes"} }

// Name returns the node's name in the account.
func (n *Node) Name() string { return n.name }

// Namespace returns the node's namespace in the account's Network, and the zero
// one if there is none.
func (n *Node) Namespace() Namespace {
	if n.a.o.Network == nil {
		return Namespace{}
	}
	return namespaceNamed(n.a.o.Network.name + "-" + n.name)
}
