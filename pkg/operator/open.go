package operator

// mostWrites is how many writes that no pod waits for are under way at once. All of them share a client that sends so many requests a second, in
// the order in which they come: what pods wait for would come after those of all other nodes, when there is something to say of each.
const mostWrites = 64

// open is what is under way.
type open struct {
	running map[*job]bool
	writes  int             // of statuses
	parked  map[string]bool // nodes whose write begins when another one has ended
}

// park tells whether a write has to wait for others, and has it begin when one of them has ended.
func (o *open) park(name string, urgent bool) bool {
	if urgent || o.writes < mostWrites {
		return false
	}
	o.parked[name] = true
	return true
}

// unpark takes in that a write has ended. It returns a node whose write begins now, "" if none has waited.
func (o *open) unpark() string {
	o.writes--
	for name := range o.parked {
		delete(o.parked, name)
		return name
	}
	return ""
}
