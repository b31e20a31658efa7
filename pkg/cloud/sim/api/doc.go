// Package api is the inside of a cloud's API endpoint: an account with a VPC whose
// operations are the halves that real clouds have (create, attach, assign, detach,
// delete), with their states, limits, tokens, lag and faults. Wire formats are
// packages below: they read a request, run it by Do and write what it returns.
//
// Where sim.Account is the contract of cloud.Cloud, Account is what a provider has
// to make that contract of.
//
// With a sim.Network an attached ENI is a link in its instance's namespace;
// without one all of it is in memory. Account starts no goroutine: what is to
// happen later has happened when the next call comes.
package api
