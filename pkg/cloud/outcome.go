package cloud

// Outcome is how a call ended, in a word. It is a label of metrics, so the words never change, even
// if the texts of errors do.
type Outcome string

// outcomes are the words for failed calls.
var outcomes = [...]struct {
	kind error
	word Outcome
}{
	{ErrThrottled, "throttled"}, {ErrSubnetFull, "subnet-has-no-free-address"}, {ErrLimit, "limit-reached"}, {ErrNotFound, "not-found"},
	{ErrForbidden, "forbidden"}, {ErrUnavailable, "cloud-unavailable"}, {ErrUnknown, "outcome-unknown"}, {ErrTaken, "address-taken"},
}

// OutcomeOf returns how a call that returned err ended: "ok", or the word for the kind of the error.
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
