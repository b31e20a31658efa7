package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
)

// frame64 is the payload of UDP that makes an Ethernet frame of 64 bytes, the
// shortest there is: 14 Ethernet, 20 IP, 8 UDP, 4 checksum.
const frame64 = 64 - 14 - 20 - 8 - 4

// flood sends such frames from the pod to dst, as fast as one CPU can, through
// sendmmsg: it sends and forwards on the same CPU, because a veth pair hands a
// packet on where it was sent. It calls begin after the warm-up and end when
// the time is over.
func flood(pod space, dst netip.AddrPort, warmUp, length time.Duration, begin, end func() error) error {
	return pod.do(func() error {
		if err := pin(0, 1); err != nil {
			return err
		}
		c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(dst))
		if err != nil {
			return fmt.Errorf("open socket in the pod: %w", err)
		}
		defer c.Close()
		batch := make([]ipv4.Message, 64)
		for i := range batch {
			batch[i].Buffers = [][]byte{make([]byte, frame64)}
		}
		conn := ipv4.NewPacketConn(c)
		send := func(length time.Duration) error {
			for start := time.Now(); time.Since(start) < length; {
				if _, err := conn.WriteBatch(batch, 0); err != nil {
					return fmt.Errorf("send from the pod: %w", err)
				}
			}
			return nil
		}
		return errors.Join(send(warmUp), begin(), send(length), end())
	})
}
