package simulate

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Rates are what a cloud lets pass and what calls cost there.
type Rates struct {
	Mutating, Describing sim.Bucket // of each kind of request
	Buckets              map[string]sim.Bucket
	Prices               map[string][]Price
	FirstLook            int // as World has it
}

// Level makes the requests that look, or those that don't, have the same rate.
func (r Rates) Level(looks bool) {
	for _, prices := range r.Prices {
		for _, p := range prices {
			if p.Looks == looks {
				delete(r.Buckets, p.Request)
			}
		}
	}
}

// perSecond is a bucket of so many, with so many more each second.
func perSecond(burst, rate int) sim.Bucket {
	return sim.Bucket{Burst: burst, Every: time.Second / time.Duration(rate)}
}

// How often pkg/cloud/aws describes ENIs where attaching and detaching take two to four
// seconds, and how often it makes a request that is refused. It describes none before it
// creates, attaches, assigns or unassigns: what it has seen a short while ago it knows.
const (
	awsFirstLook     = 2 // a node's first Interfaces: by tag and by instance
	awsUntilAttached = 2
	awsBeforeDelete  = 1
	awsUntilDetached = 2
	awsTries         = 3  // of a request that only looks, as the SDK does
	awsInsists       = 20 // of what comes while an ENI is being attached: as long as the call has time
)

// EC2 returns the rates of an account of AWS in a region: each action has its own
// bucket, of which all nodes drink. The numbers are those of the page "Request
// throttling for the Amazon EC2 API"; what attaches and detaches is of the category
// for all that is not named there. Calls are made of requests as pkg/cloud/aws makes
// them.
func EC2() Rates {
	look := func(request string, n int) Price {
		return Price{Request: request, Looks: true, Count: n, Tries: awsTries}
	}
	then := func(p Price) Price {
		p.Tries = awsInsists
		return later(p)
	}
	const enis = "DescribeNetworkInterfaces"
	return Rates{
		Mutating: perSecond(100, 5), Describing: perSecond(100, 20), FirstLook: awsFirstLook,
		Buckets: map[string]sim.Bucket{"AttachNetworkInterface": perSecond(50, 5), "DetachNetworkInterface": perSecond(50, 5)},
		Prices: map[string][]Price{
			"Limits":   {look("DescribeInstanceTypes", 1)},
			interfaces: {look(enis, 1)},
			"Subnets":  {look("DescribeSubnets", 1)},
			create: {change("CreateNetworkInterface"), then(change("AttachNetworkInterface")),
				then(look(enis, awsUntilAttached)), then(change("ModifyNetworkInterfaceAttribute"))},
			assign:              {change("AssignPrivateIpAddresses")},
			"UnassignAddresses": {change("UnassignPrivateIpAddresses")},
			"DeleteInterface": {look(enis, awsBeforeDelete), change("DetachNetworkInterface"),
				look(enis, awsUntilDetached), change("DeleteNetworkInterface")},
		},
	}
}

// BCE returns the rates of Baidu's cloud. Its limits are not published: the numbers are
// those to which Baidu's own driver keeps, if it is told to, for all nodes together.
// Calls are made of requests as pkg/cloud/bce makes them.
func BCE() Rates {
	const (
		tries   = 15 // of a request that only looks
		mostIPs = 10 // of a request
	)
	look := func(request string, n int) Price {
		return Price{Request: request, Looks: true, Count: n, Tries: tries}
	}
	return Rates{
		Mutating: perSecond(30, 20), Describing: perSecond(30, 20), FirstLook: 2, // lists: by instance and by name
		Buckets: map[string]sim.Bucket{
			"BatchAddPrivateIp": perSecond(10, 5), "BatchDeletePrivateIp": perSecond(10, 5),
			"CreateEni": perSecond(5, 5), "AttachEniInstance": perSecond(5, 5), "DeleteEni": perSecond(1, 1),
			"ListEni": perSecond(1, 1), "GetEniStatus": perSecond(10, 5),
		},
		Prices: map[string][]Price{
			"Limits":   {look("GetInstance", 1), look("GetEniQuota", 1)},
			interfaces: {look("GetInstance", 1), look("ListEni", 1)},
			"Subnets":  {look("ListSubnets", 1)},
			create: {change("CreateEni"), later(look("GetEniDetail", 1)), later(look("GetEniStatus", 4)),
				later(change("AttachEniInstance")), later(look("GetEniDetail", 1)),
				later(Price{Request: "BatchAddPrivateIp", Each: mostIPs})},
			assign:              {{Request: "BatchAddPrivateIp", Each: mostIPs}},
			"UnassignAddresses": {{Request: "BatchDeletePrivateIp", Each: mostIPs}},
			"DeleteInterface":   {change("DetachEniInstance"), look("GetEniStatus", 4), change("DeleteEni")},
		},
	}
}

func change(request string) Price { return Price{Request: request} }

func later(p Price) Price {
	p.Later = true
	return p
}
