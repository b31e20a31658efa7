// Package host makes the Linux kernel hold what package netconf says, and reads
// back what it holds, by netlink alone. For a pod it has the kernel do several
// things per system call, see batch. Every call is safe to repeat. It removes only what
// carries our protocol number or a name that only we give.
//
// The exec plugin links this package, so it must not reach for a packet filter
// or a cloud; package host/firewall is apart for that reason.
package host
