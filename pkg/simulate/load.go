package simulate

import "time"

// Pod is a pod of a load: when its ADD comes and when its DEL does, as times since
// the load begins. One whose Start is 0 is there already; how it got its address is
// not part of a Result. One whose End is not before the end of the load outlives it.
type Pod struct{ Start, End time.Duration }

// Load is the pods of all nodes.
type Load struct {
	Name     string        // what people call it
	Duration time.Duration // how long it is played
	Nodes    [][]Pod       // of each node, by Start

	AtOnce bool // all pods come at its beginning and stay: how long that takes is asked
	Cold   bool // the nodes begin with it, too: none has an address for pods yet
}
