package driver

// Scan selects ENIs of many instances: those in a VPC, or of several instances. Where
// Traits.PerScan is 0 it takes a VPC alone.
type Scan struct {
	VPC      string   // all ENIs in it, or
	Attached []string // to one of these instances, or on their way to or from, or
	Made     []string // with a mark for one of these instances, attached or not
	Next     string   // of the page before, "" for the first page
}

// Page is some of what a Scan selects. The pages of a Scan are no snapshot: what changes
// while they are asked for is in one of them, in several, or in none.
type Page struct {
	Interfaces []Interface
	Next       string // what Scan.Next is for the next page, "" if there is none
}
