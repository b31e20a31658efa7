// Package simulate plays hours and days of nodes in virtual time: pods come and go
// by a trace or a made-up load, each node has the agent itself with its node cache
// in memory, and the cloud is the simulated account under the engine that all clouds
// have. Nothing of the agent is imitated: its Run runs by a virtual clock. Of a cloud's
// calls only what passes is: each request is charged where the engine makes it, by the
// traits of the cloud's driver. So its numbers are what a node would show.
//
// It compares settings: how long pods wait for an address, how many addresses are
// idle for that, and what it costs in calls.
package simulate
