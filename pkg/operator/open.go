package operator

// mostWrites is how many writes that no pod waits for are under way at once. All of them share a client that sends so many requests a second, in
// the order in which they come: what pods wait for would come after those of all other nodes, when there is something to say of each.
const mostWrites = 64

// open is what is under way.
type open struct {
	running map[*job]bool
	writes  int             // of statuses
	parked  map[string]bool // nodes whose write begins when others have ended
}

// park tells whether a write has to wait for others. What pods wait for does not.
func (o *open) park(name string, awaited bool) bool {
	if !awaited && o.writes >= mostWrites {
		o.parked[name] = true
		return true
	}
	delete(o.parked, name)
	return false
}

// unpark returns a node whose write has waited and may begin, "" if there is none. It may need none any more, so it is asked for the next one
// until there is none: else nodes would wait for the end of writes that nobody makes.
func (o *open) unpark() string {
	if o.writes >= mostWrites {
		return ""
	}
	for name := range o.parked {
		delete(o.parked, name)
		return name
	}
	return ""
}
