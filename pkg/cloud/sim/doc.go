// Package sim is a cloud on this machine: an account, a network that carries it out,
// and the node's view of both.
//
// Account is the account of a cloud with its VPC, and its operations are the halves that
// real clouds have (create, attach, assign, detach, delete), with their states, limits,
// tokens, buckets, lag and faults on demand, in memory or, given a Network, on real
// links. Who speaks a cloud's wire format over it reads a request, runs it by Do and
// writes what it returns: test/fakecloud.
//
// Driver is the account as a driver.Driver, with the traits of EC2 or of BCE; Dial's is the
// same over a socket. Node is the cloud.Cloud of one node of the account: the engine over
// its Driver, the one that runs on real clouds.
//
// Network is its VPC, made of network namespaces: real interfaces, real routing, a
// source check that is as strict as a cloud's. It needs root, or root of a user
// namespace; everything stays inside namespaces named after the Network.
//
//	       NAME-internet
//	      203.0.113.2/24, 2001:db8:ffff::2/64
//	            | vpc
//	            |
//	            | internet
//	 NAME-vpc   |  the VPC's router: source check, a host route and a permanent
//	+-----------+---------------------+  neighbour an address
//	|  p1           p2           p3   |  one port an ENI, each of them with the
//	+--+------------+------------+----+  gateway addresses of the ENI's subnets
//	   |            |            |
//	   | eth0       | eth1       | eth0
//	+--+------------+----+  +----+---------------+
//	|      NAME-n1       |  |      NAME-n2       |
//	+--------------------+  +--------------------+
//
// What of a real VPC holds here:
//
//   - A packet that arrives on an ENI's port with a source address that is not
//     assigned to that ENI, primary or secondary, is dropped, IPv4 and IPv6
//     alike. So nothing but assigned addresses ever reaches the internet, and the
//     internet can't send from addresses of the VPC.
//   - An address goes to the ENI it is assigned to, from the moment of Assign to
//     the moment of Unassign. What goes to an address of nobody is dropped.
//   - Nodes find their gateway, and the other addresses of their subnet, by
//     ordinary ARP and neighbour discovery; the answer is always the router's MAC.
//   - No broadcast or multicast reaches another ENI.
//   - Packets to and from the internet have at most 1500 bytes.
//
// What differs from a real VPC:
//
//   - The internet has routes back to the VPC. A real internet gateway drops what
//     comes from an address without a public one; here pods can be tested with
//     and without SNAT.
//   - The router answers ping, lowers the TTL and sends ICMP errors. It answers ARP
//     for whatever lies behind another port, not for the asker's subnet alone: an
//     IPv4 route that lacks its gateway works here.
//   - There are no security groups, no bandwidth limits, no DHCP, no router
//     advertisements and no metadata service. Network.DHCP does for a node what
//     its DHCP client would do.
//   - Duplicate address detection is off on ENIs, so that IPv6 works at once: on
//     a real node it is over long before the first pod.
//
// On neighbours in the subnet: for IPv4 the ports have proxy_arp. For IPv6 the
// kernel knows nothing like it, and a process that answers in its place would have
// to outlive its starter. So the router has a proxy entry for each IPv6 address on
// every other port of its subnet. The kernel keeps them in few and long lists, so
// that many of them are slow: Attach takes about 1 ms in an empty subnet, 50 ms in
// one with 8 ENIs of 200 IPv6 addresses each, a second in one with 20. IPv4 stays
// at a few milliseconds.
package sim
