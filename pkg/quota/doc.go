// Package quota decides which of a cluster's requests to the cloud is sent next, and when. The
// account has one token bucket per action (Budget). Nodes wait in a queue of four classes of
// urgency (Queue); what waits is a node and an action, not a call with its numbers: those are
// worked out once the token is there, so that what a node needs more meanwhile costs no further
// call.
//
// With a burst of B tokens, r more per second and one call a node, the i-th of the nodes that
// come at once is served after max(0, (i-B)/r) seconds; no order can do better.
//
// Times are durations since a fixed moment of a monotonic clock, given by the caller. The
// package has no clock, no goroutine and no lock.
package quota
