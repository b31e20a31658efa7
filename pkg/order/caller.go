package order

// AgentCalls tells whether the node's own agent calls the cloud for it, as it does where there is no object: both sides say so.
// While only one does nobody calls, and else the operator does.
func AgentCalls(v View) bool { return v.Spec.Mode == Self && v.Status.Mode == Self }
