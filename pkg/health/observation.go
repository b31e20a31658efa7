package health

// Observation is what is known about a node's addresses now. All numbers are
// slots: what one pod needs.
type Observation struct {
	Usable   bool // pods can be served from the node cache; if not, the numbers are not known
	Have     int  // slots that there are
	Used     int  // of them: that pods have
	Free     int  // of them: that the next pods can have at once
	Cooling  int  // of them: cooling
	Soon     int  // of Cooling: whose cooldown ends within Config.Grace
	Demand   int  // slots that the pods of now need, with cooling ones
	Unserved int  // pods that need a slot and have none
	Target   int  // slots that the agent wants to have
	Most     int  // slots that the node can ever have, -1 if that is not known

	Stuck bool  // the node can't have one more slot now; false too where it has all it can ever have and needs no more
	Cause Cause // what keeps it from more, of all that does the one that counts; no reason if nothing failed
}

// Cause is something that keeps a node from more addresses.
type Cause struct {
	Reason string // of a fault
	What   string // which subnet, which limit, the cloud's own words
	Remedy string // what a person can do about it on this node, "" for that of the reason
}

// short tells whether pods lack addresses that are not about to be free.
func (o Observation) short() bool { return !o.Usable || o.Unserved > o.Free+o.Soon }

// well tells whether pods have their addresses, and the next pod gets one too, or the node has all
// that it can hold.
func (o Observation) well() bool {
	return !o.short() && (o.Free > 0 || o.Most >= 0 && !o.Stuck)
}

// cause returns the Cause in words that fit a message; where it has no reason, NoFreeAddress, or
// CacheUnusable if the cache can't be used.
func (o Observation) cause() Cause {
	c := Cause{Reason: o.Cause.Reason, What: words(o.Cause.What), Remedy: words(o.Cause.Remedy)}
	if _, known := faultOf(c.Reason); !known {
		if c.Reason = NoFreeAddress; !o.Usable {
			c.Reason = CacheUnusable
		}
	}
	return c
}
