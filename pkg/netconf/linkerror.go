package netconf

import "maps"

// LinkError is what could not be set up on links of the node, for a cause of their own.
type LinkError struct {
	Devs []string
	Err  error
}

func (e *LinkError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *LinkError) Unwrap() error { return e.Err }

// BrokenLinks returns what could not be set up on which links. only tells whether err is about that alone:
// then all else was done.
func BrokenLinks(err error) (broken map[string]error, only bool) {
	broken = map[string]error{}
	if err == nil {
		return broken, true
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		only = true
		for _, e := range joined.Unwrap() {
			some, all := BrokenLinks(e)
			maps.Copy(broken, some)
			only = only && all
		}
		return broken, only
	}
	if e, ok := err.(*LinkError); ok {
		for _, dev := range e.Devs {
			broken[dev] = e
		}
		return broken, true
	}
	return broken, false
}
