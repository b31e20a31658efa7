package cloudtest

import "net/http"

// Wire is what a Transport has to know of a cloud's API, and of how the cloud's
// provider uses it.
type Wire struct {
	// Action names the request, "" for one that is none of the API's, such as one to
	// the instance metadata.
	Action func(r *http.Request, body []byte) string
	// Steps are the requests of each method of cloud.Cloud.
	Steps map[string]Steps
	// Refusals are Throttled, Forbidden and Unavailable in the cloud's own words.
	Refusals map[Failure]Answer
	// Tries is how often the provider makes a request that meets this failure each
	// time; nil is once for all.
	Tries func(action string, f Failure) int
	// Chunk is how many addresses one request carries at most, see Subject.Chunk.
	Chunk int
}

// Answer is what a Transport answers in place of the cloud.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Steps are the requests that a method is made of, by the names that Wire.Action
// gives them. Where there are several names in a list any of them is meant.
type Steps struct {
	First  []string // the first that changes something or, of a describing method, the one that it is made of
	Attach []string // of CreateInterface: after it the ENI is attached
	Last   []string // the one with which the effect is complete, nil: First
	Before int      // how many requests of Last come before that one
	Late   []string // the one that can come late and still make the effect complete, nil: Last
}

// requestsFor returns the requests that a failure happens to, and how many of them pass first.
func (s Steps) requestsFor(f Failure) (actions []string, before int) {
	last := s.Last
	if last == nil {
		last = s.First
	}
	// The failures that come before the effect befall the first request that changes something:
	// Partial lets it pass, and refuses the second.
	switch f {
	case LostAfterAttach:
		return s.Attach, 0
	case LostAfterEffect:
		return last, s.Before
	case Late:
		if s.Late != nil {
			return s.Late, 0
		}
		return last, s.Before
	case Partial:
		return s.First, 1
	}
	return s.First, 0
}

// Unlimited is the Chunk of an API of which one request carries any number.
const Unlimited = 1 << 30
