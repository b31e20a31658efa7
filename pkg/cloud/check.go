package cloud

import "context"

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

// The verdicts. Unknown is for what could not be looked at.
const (
	Works Verdict = iota
	Careful
	Broken
	Unknown
)

var verdictNames = [...]string{Works: "works", Careful: "careful", Broken: "broken", Unknown: "unknown"}

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
}
