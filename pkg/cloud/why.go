package cloud

import "github.com/enipool/enipool/pkg/pool"

// Why is the cause of an error, as far as somebody treats it in a way of its own: most of them only
// the engine, some the agent and people (whys).
type Why uint8

// The causes. Busy is for an object whose state does not allow the call now: it is being made,
// attached or detached, or is attached; the answer does not tell which.
const (
	Other           Why = iota
	NoSuchInterface     // the ENI does not exist, or does not show yet
	NoSuchAddress       // the ENI has not all of the addresses
	AddressTaken        // an address by name is not free
	NoWholeBlock        // the subnet has room, but no whole block
	IndexTaken          // another ENI is at the device index
	InUse               // the ENI is attached already
	Busy
	PageLost       // begin with the first page again
	TokenReused    // the token came with other parameters before
	Unauthorized   // the credentials are right, but do not allow Error.Action of package driver
	Unsigned       // there are no credentials, so the request was not sent
	WrongClock     // the signature is too old or too new
	Between        // a proxy or something else on the way has answered, not the cloud
	NotForPods     // the ENI is tagged as not to be touched; only the engine makes this error
	NoSuchSubnet   // the subnet does not exist, or can't be one of the node's
	NoSuchInstance // the instance does not exist, or the cloud shows nothing of it
)

// whys are those that tell people more than the kind does. Where cause is 0, or advice "", that of the
// kind counts.
var whys = map[Why]struct {
	cause  pool.Kind
	advice string
}{
	NoSuchSubnet:   {cause: pool.NoSubnet},
	NoSuchInstance: {cause: pool.WrongInstance},
	Unsigned:       {advice: "; the agent has no credentials: `enipoolctl cloud check` on the node says what to do"},
	WrongClock:     {advice: "; set the node's clock, or renew temporary credentials: `enipoolctl cloud check` on the node tells which"},
	Between:        {advice: "; let it through: NO_PROXY in the agent's environment, cloud.endpoint in agent.yaml"},
}
