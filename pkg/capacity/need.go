package capacity

import "fmt"

// Need is what a cluster should carry at least; 0 is any number.
type Need struct {
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
}

// Answer tells what is missing for a need. All that is missing is 0 or empty when the need is
// met.
type Answer struct {
	Need      Need `json:"wish"`
	Met       bool `json:"granted"`
	Nodes     int  `json:"nodes"` // that are enough for the need
	NodesMore int  `json:"missingNodes"`
	PodsMore  int  `json:"missingPods"`
	ENIs      int  `json:"neededENIs"`       // that those nodes take of the quota of the VPC, with those that are kept for topologies
	IPsMore   int  `json:"missingAddresses"` // to take from new subnets
	ENIsMore  int  `json:"missingENIQuota"`  // to add to the quota of the VPC
	// Smallest are the new subnets with the fewest addresses that meet the need:
	// any number of the largest size and at most two others. Alike are the ways with
	// subnets of one size.
	Smallest []New `json:"smallestSubnets"`
	Alike    []New `json:"subnetsOfOneSize"`
}

// New is a number of new subnets of one size.
type New struct {
	Prefix int `json:"prefixLength"`
	Count  int `json:"count"`
}

func (n New) String() string { return fmt.Sprintf("%d x /%d", n.Count, n.Prefix) }

// The sizes of subnets that clouds make, and how many of one size, or below
// the largest size, a person still wants to make.
const (
	largest    = 16
	smallest   = 28
	mostNew    = 10
	fewSmaller = 2
)

// answerNeed says what is missing for the need. The nodes of the need limit the pods to max-pods each when all
// of them fit.
func (p *Plan) answerNeed(in Input, perNode density, all group) {
	need := max(in.Need.Nodes, (in.Need.Pods+perNode.pods-1)/perNode.pods)
	answer := &Answer{Need: in.Need, Nodes: need, Met: p.Nodes >= need, Smallest: []New{}, Alike: []New{}}
	p.Answer = answer
	if !in.Instance.MainNIC {
		answer.ENIs = all.enisOf(need, perNode.enis, in.KeptENIs)
	}
	if in.Need.Nodes > 0 && answer.Met {
		p.Limit = MaxPods
	}
	// Nodes and pods of the need contradict each other: what takes more nodes counts, and a person decides
	// which to change.
	if n := in.Need.Nodes; n > 0 && n < need {
		p.addNote("%d nodes of %d pods are %d pods: %d pods need %d nodes, or max-pods %d",
			n, perNode.pods, n*perNode.pods, in.Need.Pods, need, (in.Need.Pods+n-1)/n)
	}
	if answer.Met {
		return
	}
	answer.NodesMore = need - p.Nodes
	answer.PodsMore = max(in.Need.Pods-p.Pods, 0)
	if p.ByQuota != nil {
		answer.ENIsMore = max(answer.ENIs+in.UsedENIs-in.Quota, 0)
	}
	if more := need - p.ByIPs; more > 0 {
		answer.IPsMore = more * perNode.ips
		answer.Smallest = perNode.smallestSubnets(more, in.Reserved)
		answer.Alike = perNode.subnetsOfOneSize(more, in.Reserved)
	}
}

// nodesIn returns how many nodes a new subnet carries.
func (d density) nodesIn(prefix, reserved int) int {
	d.reserved = reserved
	return d.wholeNodes(d.roomOf(max(1<<(32-prefix)-reserved, 0)))
}

// smallestSubnets finds the new subnets of the fewest addresses for that number of nodes, with at
// most fewSmaller below the largest size. Two subnets of one size never carry more
// than one of twice the size, so one of each smaller size is enough, and sizes are
// tried from the largest: one is taken only if the smaller ones still allowed don't
// do, as it is larger than all of them together.
func (d density) smallestSubnets(nodes, reserved int) []New {
	list := []New{}
	if d.nodesIn(largest, reserved) == 0 {
		return list
	}
	still := fewSmaller
	for prefix := largest; prefix <= smallest && nodes > 0; prefix++ {
		carries := d.nodesIn(prefix, reserved)
		missing := nodes - d.oneOfEach(prefix+1, still, reserved)
		if missing <= 0 {
			continue
		}
		count := 1
		if prefix == largest {
			count = (missing + carries - 1) / carries
		} else {
			still--
		}
		list = append(list, New{prefix, count})
		nodes -= count * carries
	}
	return list
}

// oneOfEach returns what n subnets carry, each half the size of the one before.
func (d density) oneOfEach(prefix, n, reserved int) int {
	nodes := 0
	for ; n > 0 && prefix <= smallest; n-- {
		nodes += d.nodesIn(prefix, reserved)
		prefix++
	}
	return nodes
}

// subnetsOfOneSize lists the ways with at most mostNew subnets of one size, or else the one
// with the largest; largest first, and none larger than the first that one does.
func (d density) subnetsOfOneSize(nodes, reserved int) []New {
	list := []New{}
	for prefix := largest; prefix <= smallest; prefix++ {
		carries := d.nodesIn(prefix, reserved)
		if carries == 0 {
			break
		}
		count := (nodes + carries - 1) / carries
		if count > mostNew && len(list) > 0 {
			break
		}
		if count == 1 {
			list = list[:0] // a smaller one does as well
		}
		list = append(list, New{prefix, count})
	}
	return list
}
