package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/health"
)

// Kind is what keeps a node from more addresses: one of a closed set.
type Kind uint8

// The kinds, in the order in which they count where several are true: what a person has to mend
// before what may pass by itself.
const (
	Forbidden      Kind = iota + 1 // the cloud refuses the node's credentials, or what it asks for
	WrongInstance                  // the cloud has no instance of the node's name, or this node is another one
	Unavailable                    // the cloud does not answer, or fails
	OperatorSilent                 // the operator does not answer, or can't be asked
	CacheUnusable                  // no pod can be served from the node cache
	AddressLimit                   // the node has as many addresses as it can ever have
	SubnetFull                     // a subnet has no address left
	ENILimit                       // of the instance, of the account or of the configuration
	NoSubnet                       // there is no subnet for the ENI that is needed
	Throttled                      // the cloud wants fewer calls
	LinkMissing                    // an ENI is attached and its link is not on the node
	SetupFailed                    // new addresses can't be set up on the node
	CallFailed                     // a call failed otherwise, or its outcome is not known
	HeldByOthers                   // others on the node have addresses of the pool
	RoomTaken                      // what pods can't use takes the room: lost, or on its way back
	UnderWay                       // nothing failed: more is still to come
)

// kinds are the words of the kinds: a label of metrics and of the status, which stands still, and
// the reason of the node's condition. They are more than the reasons: what passes by itself is one
// reason for who reads the condition, and several kinds for who sizes pools. Each reason has a kind,
// and the order of both is one: cause_test.go.
var kinds = [...]struct{ word, reason string }{
	Forbidden:      {"forbidden", health.CloudForbidden},
	WrongInstance:  {"wrong-instance", health.WrongInstance},
	Unavailable:    {"unavailable", health.CloudUnavailable},
	OperatorSilent: {"operator-silent", health.OperatorSilent},
	CacheUnusable:  {"cache-unusable", health.CacheUnusable},
	AddressLimit:   {"address-limit", health.AddressLimitReached},
	SubnetFull:     {"subnet-full", health.SubnetExhausted},
	ENILimit:       {"eni-limit", health.ENILimitReached},
	NoSubnet:       {"no-subnet", health.NoSubnet},
	Throttled:      {"throttled", health.CloudThrottled},
	LinkMissing:    {"link-missing", health.LinkMissing},
	SetupFailed:    {"setup-failed", health.SetupFailed},
	CallFailed:     {"call-failed", health.CloudFailed},
	HeldByOthers:   {"held-by-others", health.NoFreeAddress},
	RoomTaken:      {"room-taken", health.NoFreeAddress},
	UnderWay:       {"under-way", health.NoFreeAddress},
}

// Kinds returns all kinds, the one that counts first first.
func Kinds() (list []Kind) {
	for k := Forbidden; k <= UnderWay; k++ {
		list = append(list, k)
	}
	return list
}

// String returns the word for metrics and the status.
func (k Kind) String() string { return kinds[k].word }

// Reason returns the reason of the node's condition.
func (k Kind) Reason() string { return kinds[k].reason }

// IsLimit tells whether there is no more than the pods have, and nothing failed.
func (k Kind) IsLimit() bool { return k == AddressLimit || k == SubnetFull || k == ENILimit }

// Cause is one answer to why a node does not have more addresses.
type Cause struct {
	Kind   Kind
	Object string        // the ENI or subnet, "" for the whole node
	Slots  int           // that it keeps away, 0 if that is not known
	Next   time.Duration // when that is tried again, a time since boot; 0 for at any time
	Words  string        // for people: what it is, and who said so
	Todo   string        // for people: what helps on this node, "" for what usually does
}

// Is tells whether there is a cause: one without a kind is none.
func (c Cause) Is() bool { return c.Kind != 0 }

// keepingSlots is a refusal as what keeps that many slots away from an object: what is said of the object
// comes before the words of who refused.
func (c Cause) keepingSlots(object string, slots int, told string) Cause {
	if c.Words != "" {
		told += ": " + c.Words
	}
	return Cause{Kind: c.Kind, Object: object, Slots: slots, Next: c.Next, Words: told}
}

// Rank sorts causes: the first is the one that counts, wherever people are told of it. Of a kind
// the one that keeps the most slots away comes first, and of those the one of the whole node. The
// order of the list does not matter. A cause that is known twice is kept once: one of the same
// kind is the same if it has the same object or the same words.
func Rank(list []Cause) []Cause {
	slices.SortFunc(list, func(x, y Cause) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(y.Slots, x.Slots), cmp.Compare(x.Object, y.Object),
			cmp.Compare(x.Words, y.Words), cmp.Compare(x.Next, y.Next))
	})
	ranked := list[:0]
	for _, c := range list {
		if !slices.ContainsFunc(ranked, c.repeats) {
			ranked = append(ranked, c)
		}
	}
	clear(list[len(ranked):])
	return ranked
}

// repeats tells whether the cause says no more than another one that counts more.
func (c Cause) repeats(other Cause) bool {
	return c.Kind == other.Kind && (c.Object == other.Object || c.Words != "" && c.Words == other.Words)
}

// Texts returns what people are told of causes.
func Texts(list []Cause) (texts []string) {
	for _, c := range list {
		texts = append(texts, c.Words)
	}
	return texts
}
