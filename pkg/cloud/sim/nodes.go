package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// NodeSpec describes a node.
type NodeSpec struct {
	Name    string
	Limits  eni.Limits
	Subnet  string   // of its own ENI
	New     []string // subnets that new ENIs may lie in, nil for every one
	LikeBCE bool     // the account behaves towards it as BCE does, else as EC2
}

// nodes are what AddNode has added.
type nodes struct {
	byName map[string]NodeSpec
}

// AddNode adds an instance with an instance type of its own and a primary ENI. With a Network the
// node is one of its namespaces, in which that ENI is configured as the system would do it.
func (a *Account) AddNode(s NodeSpec) (*Node, error) {
	a.lock()
	err := a.addNode(s)
	a.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", s.Name, err)
	}
	return a.Node(s.Name), nil
}

func (a *Account) addNode(spec NodeSpec) error {
	if err := errors.Join(validName(spec.Name), a.validLimits(spec.Limits)); err != nil {
		return err
	}
	if a.vms[spec.Name] != nil {
		return errors.New("the account has one of that name")
	}
	for _, id := range append(slices.Clone(spec.New), spec.Subnet) {
		if a.subnets[id] == nil {
			return fmt.Errorf("there is no subnet %q", id)
		}
	}
	spec.New = slices.Clone(spec.New)
	own, err := spec.primaryRequest(a.subnets[spec.Subnet].families())
	if err != nil {
		return err
	}
	a.types[spec.Name] = spec.instanceType()
	if _, err := a.addInstance(Instance{ID: spec.Name, Type: spec.Name, Subnet: spec.Subnet}, own); err != nil {
		delete(a.types, spec.Name)
		return err
	}
	a.nodes.byName[spec.Name] = spec
	return nil
}

func (a *Account) validLimits(l eni.Limits) error {
	if l.ENIs < 1 || l.ENIs > eni.MaxIndex+1 || l.V4 < 0 || l.V6 < 0 || l.V4+l.V6 == 0 {
		return fmt.Errorf("limits of %d ENIs with %d IPv4 and %d IPv6 addresses: must be 1 to %d ENIs with an address at least",
			l.ENIs, l.V4, l.V6, eni.MaxIndex+1)
	}
	return errors.Join(a.validBlock(eni.IPv4, l.V4Block), a.validBlock(eni.IPv6, l.V6Block))
}

func (a *Account) validBlock(f eni.Family, b eni.Block) error {
	if b == (eni.Block{}) {
		return nil
	}
	if host := f.Bits() - b.Bits; b.Bits != a.o.blockBits(f) || b.Size < 1 || host < 31 && b.Size > 1<<host {
		return fmt.Errorf("a block of %d %s addresses that share %d bits can't be", b.Size, f, b.Bits)
	}
	return nil
}

// instanceType returns a type that carries what the limits say.
func (s NodeSpec) instanceType() Type {
	return Type{Name: s.Name, ENIs: s.Limits.ENIs, V4: slotsOf(s.Limits, eni.IPv4), V6: slotsOf(s.Limits, eni.IPv6), WiredV6: s.Limits.V6Block.Size + 1,
		NoPrefix: s.Limits.V4Block.Size+s.Limits.V6Block.Size == 0}
}

// slotsOf returns how many slots an ENI has: one for its primary address, and one for each other
// address or block.
func slotsOf(l eni.Limits, f eni.Family) int {
	if addressLimit(l, f) == 0 {
		return 0
	}
	return 1 + allPlaces(l, f)
}

// addressLimit is how many addresses of the family an ENI may have, its primary included.
func addressLimit(l eni.Limits, f eni.Family) int {
	if f == eni.IPv4 {
		return l.V4
	}
	return l.V6
}

// allPlaces returns how many addresses or blocks an ENI may have besides the primary.
func allPlaces(l eni.Limits, f eni.Family) int { return l.PerENI(f) / blockSize(l, f) }

func blockSize(l eni.Limits, f eni.Family) int { return max(l.Block(f).Size, 1) }

// primaryRequest describes an ENI with a primary address of each family that both the subnet and the
// instance have.
func (s NodeSpec) primaryRequest(has []eni.Family) (c Create, err error) {
	v4 := slices.Contains(has, eni.IPv4) && s.Limits.V4 > 0
	v6 := slices.Contains(has, eni.IPv6) && s.Limits.V6 > 0
	if !v4 && !v6 {
		return c, errors.New("the instance may have no address of the subnet's family")
	}
	c.NoV4, c.First6 = !v4, v6
	if v6 {
		c.CountV6 = 1
	}
	return c, nil
}

// allowsNew tells whether new ENIs of the node may lie in the subnet.
func (s NodeSpec) allowsNew(subnet string) bool {
	return s.New == nil || slices.Contains(s.New, subnet)
}
