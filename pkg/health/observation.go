package health

// Observation is what is known about a node's addresses now. All numbers are
// slots: what one pod needs.
type Observation struct {
	Usable   bool // pods can be served from the node cache; if not, the numbers are not known
	Have     int  // slots that there are
	Used     int  // of them: that pods have
	Free     int  // of them: that the next pods can have at once
	Resting  int  // of them: that pods had until a moment ago
	Soon     int  // of those: that can be had within the grace
	Wanted   int  // slots that there should be for the pods of now, those that rest among them
	Unserved int  // pods that need a slot and have none
	Target   int  // slots that the agent wants to have
	Most     int  // slots that the node can ever have, -1 if that is not known

	// Causes are why the node can't have one more slot now, in any order. None means
	// that it can, or that it has all it can ever have and needs no more.
	Causes []Cause
}

// Cause is something that keeps a node from more addresses.
type Cause struct {
	Reason string // of a fault
	What   string // which subnet, which limit, the cloud's own words
}

// short tells whether pods lack addresses that are not about to be free.
func (o Observation) short() bool { return !o.Usable || o.Unserved > o.Free+o.Soon }

// well tells whether pods have their addresses, and the next one gets one too or has
// no place on the node anyway.
func (o Observation) well() bool {
	return !o.short() && (o.Free > 0 || o.Most >= 0 && len(o.Causes) == 0)
}

// cause returns the cause that counts.
func (o Observation) cause() Cause {
	worst := Cause{Reason: NoFreeAddress}
	if !o.Usable {
		worst.Reason = CacheUnusable
	}
	for _, c := range o.Causes {
		if rank(c.Reason) < rank(worst.Reason) || c.Reason == worst.Reason && worst.What == "" {
			worst = c
		}
	}
	worst.What = words(worst.What)
	return worst
}
