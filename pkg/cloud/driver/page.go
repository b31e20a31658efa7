package driver

// Scan selects ENIs of many instances, by one of its first three fields. If Traits.PerScan is 0, only
// VPC can be used.
type Scan struct {
	VPC      string   // all ENIs in it, or
	Attached []string // to one of these instances, or on their way to or from, or
	Made     []string // with a mark for one of these instances, attached or not
	Next     string   // of the page before, "" for the first page
}

// Page is a part of what a Scan selects. The pages of a Scan are no snapshot: an ENI that changes
// meanwhile may be on one of them, on several, or on none.
type Page struct {
	Interfaces []Interface
	Next       string // what Scan.Next is for the next page, "" if there is none
}
