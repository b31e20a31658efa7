package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Checker is a cloud that can look at what an agent will need before there is one:
// whether credentials work, what they may do, what there is room for.
type Checker interface {
	// Check looks and changes nothing: what changes something is asked for as a dry
	// run, where the cloud has such. What can't be looked at is a finding too, so
	// there is always an answer.
	Check(ctx context.Context) []Finding
}

// Verdict is what a finding means.
type Verdict uint8

// The verdicts. Unknown is for what the cloud does not tell whoever asks, Unasked for what it
// had no time to answer: asked later it tells.
const (
	Works Verdict = iota
	Careful
	Broken
	Unknown
	Unasked
)

var verdictNames = [...]string{Works: "works", Careful: "careful", Broken: "broken", Unknown: "unknown", Unasked: "unasked"}

// String returns the verdict's name in tables.
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

// Failed adds what could not be looked at, or is wrong, by the error of a call.
func (f *Findings) Failed(what, fix string, err error) {
	if errors.Is(err, ErrThrottled) {
		f.Throttled(what, err)
		return
	}
	f.Say(what, Broken, fix, "%v", err)
}

// usualAgain is when to ask again where the cloud has no wish: by then buckets are full again.
const usualAgain = time.Minute

// Throttled adds what the account had no calls left for, by the error of the call that told so.
func (f *Findings) Throttled(what string, err error) {
	again := usualAgain
	if e, ok := errors.AsType[interface {
		error
		Wish() time.Duration
	}](err); ok && e.Wish() > 0 {
		again = e.Wish()
	}
	seconds := int((again + time.Second - 1) / time.Second)
	*f = append(*f, Finding{What: what, Verdict: Unasked, Detail: err.Error(), TryAgain: seconds,
		Fix: fmt.Sprintf("ask again in %d s: the account has made too many calls", seconds)})
}

// MostSkew is how far apart the clocks of node and cloud may be: signatures are good
// for so long, in all clouds here. Half of it is worth a word.
const MostSkew = 5 * time.Minute

// Clock adds how far the node's clock is off the cloud's.
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

// fewFree is how many addresses of a subnet are soon gone.
const fewFree = 16

// Room adds how many addresses a subnet that new ENIs may lie in has left.
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
