// Package host makes the Linux kernel hold what package netconf says, and reads
// back what it holds, by netlink alone: one handle a namespace, no thread ever
// switches for ordinary work. Every call is safe to repeat. It removes only what
// carries our protocol number or a name that only we give.
//
// The exec plugin links this package, so it must not reach for a packet filter
// or a cloud; package host/firewall is apart for that reason.
package host
