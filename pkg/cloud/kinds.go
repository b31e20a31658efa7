package cloud

import (
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/pool"
)

// Meaning is what a kind of failure means to all who get to know of it: the engine, the agent,
// metrics and people. No property but the last four may be left out.
type Meaning struct {
	Kind    error
	Outcome Outcome
	Effect  Effect // that the call may have had all the same
	Again   Again  // what becomes of the same call if it is made again
	Pauses  Scope  // what the agent leaves alone for a while
	Pause   Delay  // for how long; none for ItsCalls: that depends on how many share the account
	Look    Look   // whether the agent has to look at the cloud
	Cause   pool.Kind

	PauseMaking Delay  // Pause of CreateInterface, if that is another one
	Advice      string // what a person can do, behind the error's own words; "" if it passes by itself
	RegionOnly  bool   // no method of Cloud fails with it
}

// Effect is what a failed call may have done.
type Effect uint8

// The effects.
const (
	NoEffect      Effect = iota + 1
	PartialEffect        // what the call returned with the error, and nothing else
	AnyEffect            // all of it, a part or nothing; now or a little later
)

// Again is what becomes of a call that is repeated.
type Again uint8

// The answers.
const (
	MayPass   Again = iota + 1 // the same call may work later
	Final                      // it was refused for good: the same call does not help
	AfterLook                  // what came of the first one has to be seen before
)

// Scope is what a failure is about: calls about it are left alone.
type Scope uint8

// The scopes. A class of calls are those that look, those that bring addresses, or those that release some.
const (
	ItsCalls          Scope = iota + 1 // all calls of the class
	ItsCallsAndObject                  // the same, and the object for longer: the cause may be there
	ItsObject                          // the ENI, or new ENIs in the subnet
	ItsRoom                            // what takes addresses of the subnet
	ItsQuota                           // the ENI, or new ENIs in any subnet
	ItsIntent                          // the ENI, or the one that was to be made with the token
)

// Delay is how long to leave something alone at most: after the first failure, and ever.
type Delay struct{ First, Most time.Duration }

// Look is whether the agent looks at the cloud after a failure.
type Look uint8

// The looks.
const (
	NoLook    Look = iota + 1
	LookSoon       // what the agent knows is old
	LookTwice      // what came of the call shows in a describe, a late effect in a later one
)

// retry is for what needs nobody to pass, and quota for what people rarely change.
var (
	retry = Delay{2 * time.Second, 2 * time.Minute}
	quota = Delay{30 * time.Second, 10 * time.Minute}
)

// askCheck is the advice where only a closer look tells what is wrong.
const askCheck = "; `enipoolctl cloud check` on the node says what to do"

// meanings are all kinds. A new one needs its row here and its sentence in the table of DESIGN.md.
var meanings = [...]Meaning{
	{Kind: ErrThrottled, Outcome: "throttled", Effect: NoEffect, Again: MayPass,
		Pauses: ItsCalls, Look: NoLook, Cause: pool.Throttled},
	{Kind: ErrSubnetFull, Outcome: "subnet-has-no-free-address", Effect: PartialEffect, Again: Final,
		Pauses: ItsRoom, Pause: Delay{10 * time.Second, 5 * time.Minute}, Look: NoLook, Cause: pool.SubnetFull}, // others may give some back
	{Kind: ErrLimit, Outcome: "limit-reached", Effect: PartialEffect, Again: Final,
		Pauses: ItsQuota, Pause: quota, Look: NoLook, Cause: pool.ENILimit,
		Advice: "; raise the quota that it names, or take a larger instance"},
	{Kind: ErrNotFound, Outcome: "not-found", Effect: NoEffect, Again: Final,
		Pauses: ItsObject, Pause: retry, PauseMaking: quota, Look: LookSoon, Cause: pool.CallFailed, Advice: askCheck},
	{Kind: ErrForbidden, Outcome: "forbidden", Effect: NoEffect, Again: Final,
		Pauses: ItsObject, Pause: Delay{30 * time.Second, 5 * time.Minute}, Look: NoLook, Cause: pool.Forbidden, Advice: askCheck},
	{Kind: ErrUnavailable, Outcome: "cloud-unavailable", Effect: NoEffect, Again: MayPass,
		Pauses: ItsCallsAndObject, Pause: retry, Look: NoLook, Cause: pool.Unavailable,
		Advice: "; are cloud.region and cloud.endpoint right? `enipoolctl cloud check` on the node says what to do"},
	{Kind: ErrUnknown, Outcome: "outcome-unknown", Effect: AnyEffect, Again: AfterLook,
		Pauses: ItsIntent, Pause: retry, Look: LookTwice, Cause: pool.CallFailed},
	{Kind: ErrTaken, Outcome: "address-taken", Effect: PartialEffect, Again: MayPass,
		Pauses: ItsObject, Pause: retry, Look: NoLook, Cause: pool.CallFailed, RegionOnly: true},
}

// Kind returns the kind of an error, ErrUnknown for one that is not from this package.
func Kind(err error) error {
	for i := range meanings {
		if kind := meanings[i].Kind; errors.Is(err, kind) {
			return kind
		}
	}
	return ErrUnknown
}

// Kinds returns all kinds.
func Kinds() (list []error) {
	for _, m := range meanings {
		list = append(list, m.Kind)
	}
	return list
}

// NodeKinds returns the kinds that the methods of a Cloud fail with.
func NodeKinds() (list []error) {
	for _, m := range meanings {
		if !m.RegionOnly {
			list = append(list, m.Kind)
		}
	}
	return list
}

// MeaningOf returns what an error means: that of its kind, and for people what its Why tells besides.
func MeaningOf(err error) Meaning {
	m, kind := Meaning{}, Kind(err)
	for i := range meanings {
		if meanings[i].Kind == kind {
			m = meanings[i]
		}
	}
	e, is := errors.AsType[*Error](err)
	if !is {
		return m
	}
	told := whys[e.Why]
	if told.cause != 0 && m.Again == Final { // else more may have happened, which counts more
		m.Cause = told.cause
	}
	if told.advice != "" {
		m.Advice = told.advice
	}
	return m
}

// Outcome is how a call ended, in a word. It is a label of metrics, so the words never change, even
// if the texts of errors do.
type Outcome string

// OutcomeOf returns how a call that returned err ended: "ok", or the word for the kind of the error.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return "ok"
	}
	return MeaningOf(err).Outcome
}

// Outcomes returns the words for failed calls of a Cloud: metrics begin to count each of them at 0.
func Outcomes() (words []string) {
	for _, kind := range NodeKinds() {
		words = append(words, string(OutcomeOf(kind)))
	}
	return words
}
