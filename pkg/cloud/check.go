package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Checker is a cloud that can check what an agent will need, before one runs: whether credentials
// work, what they allow, what there is room for.
type Checker interface {
	// Check changes nothing: calls that would change something are made as dry runs, if the
	// cloud has those. What can't be checked is a finding too.
	Check(ctx context.Context) []Finding
}

// Verdict is what a finding means.
type Verdict uint8

// The verdicts. Unknown is for what the cloud never tells, Unasked for what it refused to answer for
// its rate: asked again later, it tells.
const (
	Works Verdict = iota
	Careful
	Broken
	Unknown
	Unasked
)

var verdictNames = [...]string{Works: "works", Careful: "careful", Broken: "broken", Unknown: "unknown", Unasked: "unasked"}

// String returns the verdict's name, as tables and JSON have it.
func (v Verdict) String() string { return verdictNames[v] }

// MarshalText is for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Finding is what Check says of one thing.
type Finding struct {
	What    string  `json:"what"` // "permission ec2:CreateTags", "subnet subnet-1"
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"`        // what was found, without secrets
	Fix     string  `json:"fix,omitempty"` // what a person can do, "" if there is nothing to do
	// TryAgain is in how many seconds to ask for what is Unasked.
	TryAgain int `json:"tryAgainSeconds,omitempty"`
}

// Findings are what a Check has found so far.
type Findings []Finding

// Say adds a finding.
func (f *Findings) Say(what string, v Verdict, fix, format string, args ...any) {
	*f = append(*f, Finding{What: what, Verdict: v, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

// Failed adds a finding of what is wrong, or can't be checked, by the error of a call.
func (f *Findings) Failed(what, fix string, err error) {
	if errors.Is(err, ErrThrottled) {
		f.Throttled(what, err)
		return
	}
	f.Say(what, Broken, fix, "%v", err)
}

// usualAgain is when to ask again if the cloud does not say: by then buckets are full again.
const usualAgain = time.Minute

// Throttled adds a finding of what the account had no calls left for, by the error of the call.
func (f *Findings) Throttled(what string, err error) {
	again := usualAgain
	if e, ok := errors.AsType[interface {
		error
		RetryDelay() time.Duration
	}](err); ok && e.RetryDelay() > 0 {
		again = e.RetryDelay()
	}
	seconds := int((again + time.Second - 1) / time.Second)
	*f = append(*f, Finding{What: what, Verdict: Unasked, Detail: err.Error(), TryAgain: seconds,
		Fix: fmt.Sprintf("ask again in %d s: the account has made too many calls", seconds)})
}

// MostSkew is how far apart the clocks of node and cloud may be: signatures of all clouds here are
// valid for at least that long. From half of it on the finding is Careful.
const MostSkew = 5 * time.Minute

// Clock adds a finding of how far the node's clock is off the cloud's.
func (f *Findings) Clock(skew time.Duration) {
	skew = skew.Abs().Round(time.Second)
	const fix = "set the node's clock: from 5 minutes on the cloud refuses its calls"
	switch {
	case skew >= MostSkew:
		f.Say("clock", Broken, fix, "%s off the cloud's", skew)
	case skew >= MostSkew/2:
		f.Say("clock", Careful, fix, "%s off the cloud's", skew)
	default:
		f.Say("clock", Works, "", "%s off the cloud's", skew)
	}
}

// fewFree is from how few free addresses on a subnet's finding is Careful.
const fewFree = 16

// Room adds a finding of how many free addresses a subnet for new ENIs has.
func (f *Findings) Room(subnet string, free int) {
	const fix = "delete what else uses addresses there, or name another subnet in cloud.subnets"
	switch {
	case free <= 0:
		f.Say("subnet "+subnet, Broken, fix, "no address is free")
	case free < fewFree:
		f.Say("subnet "+subnet, Careful, fix, "only %d addresses are free", free)
	default:
		f.Say("subnet "+subnet, Works, "", "%d addresses are free", free)
	}
}
