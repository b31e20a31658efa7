// Package placement decides in which subnet a node's new ENI lies, from the view of a whole
// cluster: how much room each subnet has for ENIs, which subnets a node may use, which are set
// aside after the cloud refused, and who gets what while there is not enough for all.
//
// It also says what is to be done so that exactly the ranges that people name are reserved.
//
// Room is worked out from what was described and done since, each time it is asked for. It is
// never counted up and down, since a count that once missed an event stays wrong for ever.
//
// All of it is values: no clock, no goroutine. Times are since a fixed moment of a monotonic clock.
package placement
