package simulate

import "time"

// Result is what a load was like for one setting. Times are in seconds where JSON
// shows them.
type Result struct {
	Name  string `json:"name"`
	Share int    `json:"share,omitempty"` // percent of the account's rates that an operator took, 0: the agents call the cloud

	Pods   int     `json:"pods"`             // that asked for an address
	Served *Served `json:"served,omitempty"` // how long it took, if all of them came at once
	Waits  Waits   `json:"waits"`            // of pods for their address
	// Topologies is how those of the pods fared that belong to topologies, nil where none do.
	Topologies *HostedResult `json:"topologies,omitempty"`
	Idle       Idle          `json:"idle"`            // addresses on nodes that no pod had
	Calls      Calls         `json:"calls"`           // to the cloud
	Usage      []Usage       `json:"usage,omitempty"` // of the account's rates, by kind of request, where nodes share them
	Series     []Bin         `json:"series"`          // all of it over time, sums of all nodes
}

// Waits is how long pods waited from their first ADD to their address. One that had
// none at its end has waited until then.
type Waits struct {
	P50    Seconds `json:"p50"`
	P99    Seconds `json:"p99"`
	Max    Seconds `json:"max"`
	Waited int     `json:"waited"` // pods that waited at all
	Failed int     `json:"failed"` // ADDs that ended without an address; their pods tried again
	Never  int     `json:"never"`  // pods that got no address as long as they lived
}

// Idle counts addresses that are on a node and that no pod has: free, cooling and releasing
// ones. Primary addresses of ENIs are not counted.
type Idle struct {
	Mean         float64 `json:"mean"`
	Max          int     `json:"max"`
	AddressHours float64 `json:"addressHours"`
	ENIs         float64 `json:"enis"` // mean number of ENIs with pods' addresses
}

// Calls counts requests to the cloud. Flaps are how often a node asked for addresses within
// FlapTime of releasing some.
type Calls struct {
	Total       int `json:"total"`
	Describe    int `json:"describe"` // requests that change nothing
	Assign      int `json:"assign"`
	Unassign    int `json:"unassign"`
	Attachments int `json:"attachments"` // ENIs made
	Detachments int `json:"detachments"` // ENIs deleted
	Throttled   int `json:"throttled"`
	Failed      int `json:"failed"` // otherwise
	Flaps       int `json:"flaps"`
}

// Changes returns how many calls changed something.
func (c Calls) Changes() int { return c.Assign + c.Unassign + c.Attachments + c.Detachments }

// FlapTime is the time after releasing addresses in which a node that asks for some flaps.
const FlapTime = 10 * time.Minute

// Bin is a span of time of a Result; all are of the same length. Demand, Target,
// Owned, Free and Idle are what they were at its end; Waiting is the most pods that
// waited in it.
type Bin struct {
	Start     Seconds `json:"start"`
	Demand    int     `json:"demand"`  // pods that are to have an address
	Target    int     `json:"target"`  // what the pools should have
	Owned     int     `json:"owned"`   // addresses on nodes
	Free      int     `json:"free"`    // of them: could be handed out at once
	Idle      int     `json:"idle"`    // of them: no pod has them
	Waiting   int     `json:"waiting"` // pods without an address
	Longest   Seconds `json:"longest"` // longest wait that ended in it
	Calls     int     `json:"calls"`   // that change something
	Describes int     `json:"looks"`   // calls that change nothing
}

// Seconds is a time that JSON shows as a number of seconds.
type Seconds time.Duration

// MarshalJSON writes seconds with as many decimals as needed, at most three.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return appendSeconds(nil, time.Duration(s)), nil
}

// String is how people write a time.
func (s Seconds) String() string { return time.Duration(s).Round(time.Millisecond).String() }
