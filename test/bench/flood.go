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

// dialUDP opens a socket in the namespace that sends to an address.
func dialUDP(in space, to netip.AddrPort) (c *net.UDPConn, err error) {
	err = in.do(func() (err error) { c, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to)); return err })
	return c, err
}

// listenUDP opens a socket in the namespace that is sent to.
func listenUDP(in space, at netip.AddrPort) (c *net.UDPConn, err error) {
	err = in.do(func() (err error) { c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at)); return err })
	return c, err
}

// exchange has one packet go there and one come back: to all rules a flow is new until
// somebody answers, and what is new takes the plain way.
func exchange(there, back *net.UDPConn) error {
	deadline := time.Now().Add(5 * time.Second)
	one := make([]byte, frame64)
	if err := errors.Join(there.SetReadDeadline(deadline), back.SetReadDeadline(deadline)); err != nil {
		return err
	}
	if _, err := there.Write(one); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	_, from, err := back.ReadFromUDPAddrPort(one)
	if err != nil {
		return fmt.Errorf("wait for a question: %w", err)
	}
	if _, err := back.WriteToUDPAddrPort(one, from); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if _, err := there.Read(one); err != nil {
		return fmt.Errorf("wait for an answer: %w", err)
	}
	return nil
}

// flood sends such frames by a socket of the namespace, as fast as one CPU can, through
// sendmmsg: it sends and forwards on the same CPU, because a veth pair hands a
// packet on where it was sent. It calls begin after the warm-up and end when
// the time is over.
func flood(in space, c *net.UDPConn, warmUp, length time.Duration, begin, end func() error) error {
	return in.do(func() error {
		if err := pin(0, 1); err != nil {
			return err
		}
		batch := make([]ipv4.Message, 64)
		for i := range batch {
			batch[i].Buffers = [][]byte{make([]byte, frame64)}
		}
		conn := ipv4.NewPacketConn(c)
		send := func(length time.Duration) error {
			for start := time.Now(); time.Since(start) < length; {
				if _, err := conn.WriteBatch(batch, 0); err != nil {
					return fmt.Errorf("send: %w", err)
				}
			}
			return nil
		}
		return errors.Join(send(warmUp), begin(), send(length), end())
	})
}
