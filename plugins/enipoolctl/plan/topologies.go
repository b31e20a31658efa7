package plan

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/topology"
	"github.com/enipool/enipool/pkg/topology/fit"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// keptNode is a node of which a part is kept for pods of topologies.
type keptNode struct {
	account.Instance
	general      capacity.Instance // what is left of it
	enis, places int               // that are kept
	most         int               // other pods that it carries
}

// keepPlaces returns what of an instance is left for other pods.
func (f *commandFlags) keepPlaces(m account.Instance) (n keptNode, err error) {
	if f.across && f.Cloud == "aws" {
		return n, errors.New("--cross-subnet: ENIs of aws carry addresses of their own subnet alone")
	}
	n.Instance = m
	if n.general, n.enis, n.places, err = m.Keep(f.Places, !f.carriesAcross()); err != nil {
		return n, fmt.Errorf("--topology-places %w", err)
	}
	n.most = n.general.PodsBeside(n.anywhere())
	return n, nil
}

// anywhere is how many of the places that are kept may be on any ENI.
func (n keptNode) anywhere() int {
	if n.enis > 0 {
		return 0
	}
	return n.places
}

// carriesAcross tells whether ENIs carry addresses of other subnets than their own.
func (f *commandFlags) carriesAcross() bool { return f.across || account.CarriesAcross(f.Cloud) }

// String describes the node for errors.
func (n keptNode) String() string {
	if n.places == 0 {
		return n.Instance.String()
	}
	return n.Instance.String() + "; " + account.KeptText(n.enis, n.places)
}

// addObjects takes in what Subnets say of the subnets, and adds those whose objects tell where they are.
func (f *commandFlags) addObjects(list []capacity.Subnet) ([]capacity.Subnet, error) {
	for _, o := range f.objects.Subnets {
		if account.FindSubnet(list, o.Name) == nil && o.Status.V4 != "" {
			s, err := f.subnetOf(o)
			if err != nil {
				return nil, fmt.Errorf("--file: Subnet %s: %w", o.Name, err)
			}
			list = append(list, s)
		}
		if s := account.FindSubnet(list, o.Name); s != nil {
			s.Exclusive = s.Exclusive || o.Spec.Use == "Exclusive"
		}
	}
	return list, nil
}

// subnetOf reads a subnet of its object's status.
func (f *commandFlags) subnetOf(o crd.Subnet) (s capacity.Subnet, err error) {
	s = capacity.Subnet{ID: o.Name, Zone: o.Status.Zone}
	if s.CIDR, err = netip.ParsePrefix(o.Status.V4); err != nil {
		return s, err
	}
	s.Available, err = capacity.Usable(s.CIDR, f.Reserved)
	if o.Status.DescribedAt != nil {
		s.Available = min(s.Available, int(o.Status.Free))
	}
	return s, err
}

func (f *commandFlags) objectOf(id string) crd.Subnet {
	at := slices.IndexFunc(f.objects.Subnets, func(o crd.Subnet) bool { return o.Name == id })
	if at < 0 {
		return crd.Subnet{}
	}
	return f.objects.Subnets[at]
}

// What EC2 gives to nobody at the ends of a subnet, which keeps the most: the operator reckons with it in each cloud.
const (
	keptFirst = 4
	keptLast  = 1
)

// fitTopologies works out what topologies take of the subnets, nil if there are none.
func (f *commandFlags) fitTopologies(n keptNode, subnets []capacity.Subnet) (*fit.Plan, error) {
	if len(f.objects.Topologies) == 0 {
		return nil, nil
	}
	in := fit.Input{Topologies: f.objects.Topologies, Nodes: f.need.Nodes, Places: n.places, ENIs: n.enis,
		PerENI: n.PerENI(eni.IPv4) / max(1, n.Block(eni.IPv4).Size), Across: f.carriesAcross()}
	for _, s := range subnets {
		if !s.CIDR.IsValid() {
			continue // which addresses it has nobody knows
		}
		o := f.objectOf(s.ID)
		one := fit.Subnet{Free: s.Available, Subnet: topology.Subnet{ID: s.ID, Zone: s.Zone, V4: s.CIDR, Ready: o.Spec.Use != "Disabled", Exclusive: s.Exclusive,
			KeptFirst: keptFirst, KeptLast: keptLast}}
		for _, text := range o.Spec.Reserve {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("--file: Subnet %s: reserve: %w", s.ID, err)
			}
			one.Reserve = append(one.Reserve, p)
		}
		in.Subnets = append(in.Subnets, one)
	}
	p := fit.Make(in)
	return &p, nil
}

// leftForNodes returns the subnets with what topologies and others leave of them, and notes about it.
func (f *commandFlags) leftForNodes(subnets []capacity.Subnet, taken *fit.Plan) (list []capacity.Subnet, notes []string) {
	for _, subnet := range subnets {
		o := f.objectOf(subnet.ID)
		if o.Spec.Use == "Disabled" {
			notes = append(notes, fmt.Sprintf("subnet %s is Disabled: it carries nothing new", subnet.ID))
			continue
		}
		if keep := min(subnet.Available, int(o.Spec.KeepFree)); keep > 0 && !subnet.Exclusive {
			subnet.Available -= keep
			notes = append(notes, fmt.Sprintf("subnet %s: %d addresses are left free by keepFree", subnet.ID, keep))
		}
		if n := min(subnet.Available, takenOf(taken, subnet.ID)); n > 0 && !subnet.Exclusive {
			subnet.Available -= n
			notes = append(notes, fmt.Sprintf("subnet %s is Shared: topologies take %d addresses of it", subnet.ID, n))
		}
		list = append(list, subnet)
	}
	return list, notes
}

func takenOf(p *fit.Plan, id string) int {
	if p == nil {
		return 0
	}
	for _, s := range p.Subnets {
		if s.Subnet == id {
			return s.Taken
		}
	}
	return 0
}

// checkObjects refuses what contradicts itself in the flags about objects.
func (f *commandFlags) checkObjects() error {
	switch {
	case len(f.objects.Topologies) > 0 && f.output == "csv":
		return errors.New("--output csv: has no columns for topologies; take json or yaml")
	case f.Places < 0:
		return fmt.Errorf("--topology-places %d: must be at least 0", f.Places)
	}
	return nil
}

// printTopologies prints what topologies hold.
func printTopologies(out io.Writer, plan fit.Plan) error {
	for _, s := range topologySheets(plan) {
		fmt.Fprintln(out)
		if err := s.print(out); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\ntopologies\n  %s\n", strings.Join(topologyLines(plan), "\n  "))
	return nil
}

// topologySheets are the topologies, and the subnets that they name.
func topologySheets(plan fit.Plan) []sheet {
	of := sheet{Heads: strings.Fields("TOPOLOGY STRATEGY PODS HOLDS ROOM WHY")}
	for _, h := range plan.Topologies {
		of.Rows = append(of.Rows, []string{h.Topology, h.Strategy, strconv.Itoa(h.Pods), strconv.Itoa(h.Holds), strconv.Itoa(h.Room), cli.OrDash(h.Reason)})
	}
	if len(plan.Subnets) == 0 {
		return []sheet{of}
	}
	subnets := sheet{Heads: strings.Fields("SUBNET ZONE USE RANGES PODS ENIS LEFT")}
	for _, s := range plan.Subnets {
		use := "Shared"
		if s.Exclusive {
			use = "Exclusive"
		}
		line := []string{s.Subnet, cli.OrDash(s.Zone), use}
		for _, n := range []int{s.Ranges, s.Pods, s.ENIs, s.Left} {
			line = append(line, strconv.Itoa(n))
		}
		subnets.Rows = append(subnets.Rows, line)
	}
	return []sheet{of, subnets}
}

// topologyLines says in sentences what the tables can't.
func topologyLines(plan fit.Plan) []string {
	var lines []string
	for _, n := range plan.Notes {
		lines = append(lines, "note: "+n)
	}
	for _, h := range plan.Topologies {
		for _, change := range h.Changes {
			lines = append(lines, h.Topology+": "+change)
		}
	}
	lines = append(lines, plan.Changes...)
	pods, holds := 0, 0
	for _, h := range plan.Topologies {
		pods, holds = pods+h.Pods, holds+h.Holds
	}
	head := fmt.Sprintf("needed: addresses for %d pods of topologies: ", pods)
	if plan.Met {
		return append(lines, head+"fits")
	}
	if holds == pods {
		return append(lines, head+"does not fit, nodes keep too few places")
	}
	return append(lines, fmt.Sprintf("%sdoes not fit, subnets and ranges hold %d", head, holds))
}
