package classify

import (
	"net/netip"
	"reflect"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/topology"
)

// keptFirst and keptLast are how many addresses at the ends of a subnet the cloud gives to nobody. EC2 keeps the most.
const (
	keptFirst = 4
	keptLast  = 1
)

// known is what pods are classified by.
type known struct {
	topology.Cluster
	namespaces map[string]Namespace // by name
	topologies []*crd.PodSubnetTopology
	unreadable map[string]error // topologies, by name
	memo       map[alike]outcome
}

// outcome is what becomes of a pod.
type outcome struct {
	class topology.Class
	wait  topology.Wait
}

// alike are pods of which each gets the answer of the others: those of a topology that have no claim.
type alike struct {
	topology  string
	ofWorkers bool // they belong to a StatefulSet
}

// classify says what becomes of a pod, false as long as its namespace is not known. Thousands may wait for the same: that is worked out once.
func (k *known) classify(p topology.Pod) (outcome, bool) {
	in, is := k.namespaces[p.Namespace]
	if !is {
		return outcome{}, false
	}
	p.NamespaceLabels = in.Labels
	of, found := topology.Find(p, k.Topologies)
	if !found {
		return outcome{}, true
	}
	like := alike{of.Name, p.StatefulSet.Name != ""}
	for _, f := range k.Families {
		if _, has := k.Claims.Of(of.Name, p, f); has {
			return k.ask(p), true
		}
	}
	answer, asked := k.memo[like]
	if !asked {
		answer = k.ask(p)
		k.memo[like] = answer
	}
	return answer, true
}

func (k *known) ask(p topology.Pod) (o outcome) {
	o.class, o.wait = topology.Classify(p, &k.Cluster)
	return o
}

// forget drops what was worked out.
func (k *known) forget() { k.memo = map[alike]outcome{} }

// takeSubnet takes a subnet in, and tells whether that changes anything. Most of what is told of one are counts.
func (k *known) takeSubnet(s *crd.Subnet, deleted bool) (changed bool, err error) {
	is, err := s.ForTopologies(keptFirst, keptLast)
	for i, was := range k.Subnets {
		if was.ID != s.Name {
			continue
		}
		if deleted {
			k.Subnets = append(k.Subnets[:i:i], k.Subnets[i+1:]...)
			return true, nil
		}
		k.Subnets[i] = is
		return !reflect.DeepEqual(was, is), err
	}
	if deleted {
		return false, nil
	}
	k.Subnets = append(k.Subnets, is)
	return true, err
}

// takeClaim does that for a claim. The address of one that can't be read is taken, whoever has it.
func (k *known) takeClaim(c *crd.AddressClaim, deleted bool) (changed bool, err error) {
	at, wrong := netip.ParseAddr(c.Spec.Address)
	if wrong != nil {
		return false, wrong
	}
	k.Claims.Remove(at)
	delete(k.Taken, at)
	if deleted {
		return true, nil
	}
	is, err := c.Read()
	if err != nil {
		k.Taken[at] = true
		return true, err
	}
	k.Claims.Put(is)
	return true, nil
}

// takeTopologies takes in all that there are, and tells whether any is new or was changed by people, or is gone.
func (k *known) takeTopologies(list []*crd.PodSubnetTopology) (changed bool) {
	before := k.Topologies
	k.topologies, k.Topologies, k.unreadable = list, nil, map[string]error{}
	for _, t := range list {
		is, err := t.Read()
		if err != nil {
			k.unreadable[t.Name] = err
		}
		k.Topologies = append(k.Topologies, is)
	}
	return !reflect.DeepEqual(before, k.Topologies)
}
