package status

// Step is a step of a plan that was begun, or that could not be.
type Step struct {
	Action string // restore, assign, create, release or delete
	Object string // the ENI, or the subnet of a new one
	Count  int    // addresses, 0 if it is not about a number of them
	Reason string // why the plan has it
	Failed string // why it could not be begun, "" if it was
}
