package simulate

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Rates are what a cloud lets pass and what calls cost there.
type Rates struct {
	Mutating, Describing sim.Bucket // of each kind of request
	Buckets              map[string]sim.Bucket
	Prices               map[string][]sim.Price
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

// How often pkg/cloud/aws describes ENIs, and asks for one to be deleted that is still
// being detached, where attaching and detaching take two to four seconds.
const (
	awsLook          = 2 // in Interfaces
	awsBeforeCreate  = 1
	awsBeforeAttach  = 1
	awsUntilAttached = 4
	awsBeforeChange  = 1 // of an ENI that there is
	awsUntilDeleted  = 3
	awsTries         = 3 // of a request that only looks, as the SDK does
)

// EC2 returns the rates of an account of AWS in a region: each action has its own
// bucket, of which all nodes drink. The numbers are those of the page "Request
// throttling for the Amazon EC2 API"; what attaches and detaches is of the category
// for all that is not named there. Calls are made of requests as pkg/cloud/aws makes
// them.
func EC2() Rates {
	look := func(request string, n int) sim.Price {
		return sim.Price{Request: request, Looks: true, Count: n, Tries: awsTries}
	}
	const enis = "DescribeNetworkInterfaces"
	return Rates{
		Mutating: perSecond(100, 5), Describing: perSecond(100, 20),
		Buckets: map[string]sim.Bucket{"AttachNetworkInterface": perSecond(50, 5), "DetachNetworkInterface": perSecond(50, 5)},
		Prices: map[string][]sim.Price{
			"Limits":     {look("DescribeInstanceTypes", 1)},
			"Interfaces": {look(enis, awsLook)},
			"Subnets":    {look("DescribeSubnets", 1)},
			create: {look(enis, awsBeforeCreate), change("CreateNetworkInterface"),
				later(look(enis, awsBeforeAttach)), later(change("AttachNetworkInterface")),
				later(look(enis, awsUntilAttached)), later(change("ModifyNetworkInterfaceAttribute"))},
			assign:              {look(enis, awsBeforeChange), change("AssignPrivateIpAddresses")},
			"UnassignAddresses": {look(enis, awsBeforeChange), change("UnassignPrivateIpAddresses")},
			"DeleteInterface": {look(enis, awsBeforeChange), change("DetachNetworkInterface"),
				{Request: "DeleteNetworkInterface", Count: awsUntilDeleted}},
		},
	}
}

// BCE returns the rates of Baidu's cloud. Its limits are not published: the numbers are
// those to which Baidu's own driver keeps, if it is told to, for all nodes together.
// Calls are made of requests as pkg/cloud/bce makes them.
func BCE() Rates {
	look := func(request string, n int) sim.Price { return sim.Price{Request: request, Looks: true, Count: n} }
	wait := sim.Price{Request: "GetEniStatus", Looks: true, Count: 4, Tries: 10, Later: true} // it goes on looking
	const mostIPs = 10                                                                        // of a request
	return Rates{
		Mutating: perSecond(30, 20), Describing: perSecond(30, 20),
		Buckets: map[string]sim.Bucket{
			"BatchAddPrivateIp": perSecond(10, 5), "BatchDeletePrivateIp": perSecond(10, 5),
			"CreateEni": perSecond(5, 5), "AttachEniInstance": perSecond(5, 5), "DeleteEni": perSecond(1, 1),
			"ListEni": perSecond(1, 1), "GetEniStatus": perSecond(10, 5),
		},
		Prices: map[string][]sim.Price{
			"Limits":     {look("GetInstance", 1), look("GetEniQuota", 1)},
			"Interfaces": {look("GetInstance", 1), look("ListEni", 2)},
			"Subnets":    {look("ListSubnets", 1)},
			create: {look("GetInstance", 1), look("ListEni", 2), change("CreateEni"),
				later(look("GetEniDetail", 1)), wait, later(change("AttachEniInstance")), later(look("GetEniDetail", 1))},
			assign:              {{Request: "BatchAddPrivateIp", Each: mostIPs}},
			"UnassignAddresses": {{Request: "BatchDeletePrivateIp", Each: mostIPs}},
			"DeleteInterface":   {change("DetachEniInstance"), look("GetEniStatus", 4), change("DeleteEni")},
		},
	}
}

func change(request string) sim.Price { return sim.Price{Request: request} }

func later(p sim.Price) sim.Price {
	p.Later = true
	return p
}
