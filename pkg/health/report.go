package health

// Report is what the cluster is to know of a node's addresses.
type Report struct {
	Faulty   bool   `json:"faulty"`   // pods that need addresses can't get them, and not only for a moment
	Reason   string `json:"reason"`   // one word in CamelCase for the condition and for metrics, such as SubnetExhausted
	Message  string `json:"message"`  // one line for people: numbers, and what to do
	Taint    bool   `json:"taint"`    // new pods are to be kept off the node
	Capacity int    `json:"capacity"` // pods that can have addresses here, -1 if that is not known
}
