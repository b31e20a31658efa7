package cloud

// Outcome is how a call ended, in a word: a label of metrics, which stays what it is however
// errors are worded.
type Outcome string

// outcomes are those of what failed.
var outcomes = [...]struct {
	kind error
	word Outcome
}{
	{ErrThrottled, "throttled"}, {ErrSubnetFull, "subnet-has-no-free-address"}, {ErrLimit, "limit-reached"}, {ErrNotFound, "not-found"},
	{ErrForbidden, "forbidden"}, {ErrUnavailable, "cloud-unavailable"}, {ErrUnknown, "outcome-unknown"}, {ErrTaken, "address-taken"},
}

// OutcomeOf returns how a call ended that returned err: "ok", or a word for the kind of failure.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return "ok"
	}
	kind := Kind(err)
	for _, o := range outcomes {
		if o.kind == kind {
			return o.word
		}
	}
	return "outcome-unknown"
}
