package order

import "github.com/enipool/enipool/pkg/pool"

// Reason is the word by which an object says why its node can't have more. The set is closed: the API server refuses a status with
// another one.
type Reason string

// Kinds of causes that only an operator has: it knows the account and what other nodes need.
const (
	AccountLimit pool.Kind = 100 + iota // of ENIs, which no instance's own limit shows
	Isolated                            // the subnet has too few addresses left for one more ENI
)

// reasons has a row for each kind of cause. One without a reason is not told: it is the agent's own affair, or under way. Of the rows of
// one reason the first is what the node's agent takes it for.
var reasons = [...]struct {
	kind   pool.Kind
	reason Reason
	agent  pool.Kind // what the agent takes it for, where that is another kind
	lasts  bool      // it passes only when a person does something
}{
	{kind: pool.Forbidden, reason: "Forbidden", lasts: true},
	{kind: pool.WrongInstance, reason: "InstanceUnknown", lasts: true},
	{kind: pool.Unavailable, reason: "CloudUnavailable"},
	{kind: pool.OperatorSilent},
	{kind: pool.CacheUnusable},
	{kind: pool.AddressLimit, reason: "AddressLimit"},
	{kind: pool.SubnetFull, reason: "SubnetFull", lasts: true},
	{kind: pool.ENILimit, reason: "InterfaceLimit"},
	{kind: pool.NoSubnet, reason: "NoSubnet", lasts: true},
	{kind: pool.Throttled, reason: "Throttled"},
	{kind: pool.LinkMissing},
	{kind: pool.SetupFailed},
	{kind: pool.CallFailed, reason: "CloudUnavailable"},
	{kind: pool.HeldByOthers},
	{kind: pool.RoomTaken},
	{kind: pool.UnderWay},
	{kind: AccountLimit, reason: "AccountLimit", agent: pool.ENILimit, lasts: true},
	{kind: Isolated, reason: "Isolated", agent: pool.SubnetFull, lasts: true},
}

// ReasonOf returns the reason that an object has for a cause, "" for one that it does not tell.
func ReasonOf(k pool.Kind) Reason {
	for _, row := range reasons {
		if row.kind == k {
			return row.reason
		}
	}
	return ""
}

// Reasons returns all of them, each once.
func Reasons() (list []Reason) {
	known := map[Reason]bool{"": true}
	for _, row := range reasons {
		if !known[row.reason] {
			known[row.reason], list = true, append(list, row.reason)
		}
	}
	return list
}

// Kind returns the cause that the reason is to the node's agent: a failed call where a later release says what this one does not know.
func (r Reason) Kind() pool.Kind {
	for _, row := range reasons {
		switch {
		case r == "" || row.reason != r:
		case row.agent != 0:
			return row.agent
		default:
			return row.kind
		}
	}
	return pool.CallFailed
}

// Lasts tells whether the cause stays until a person does something.
func (r Reason) Lasts() bool {
	for _, row := range reasons {
		if r != "" && row.reason == r {
			return row.lasts
		}
	}
	return false
}
