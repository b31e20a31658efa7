package fastpath

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReadTimes reads conntrack's times of the network namespace.
func ReadTimes() (t Times, err error) {
	var tick unix.Timespec
	// The coarse clock moves once a jiffy.
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return t, fmt.Errorf("read the resolution of the clock: %w", err)
	}
	t.Tick = time.Duration(tick.Nano())
	for name, at := range map[string]*time.Duration{
		"tcp_timeout_established": &t.TCP, "tcp_timeout_unacknowledged": &t.TCPUnacknowledged,
		"udp_timeout": &t.UDP, "udp_timeout_stream": &t.UDPStream,
	} {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + name)
		if err != nil {
			return t, err
		}
		seconds, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return t, fmt.Errorf("nf_conntrack_%s: %w", name, err)
		}
		*at = time.Duration(seconds) * time.Second
	}
	return t, nil
}
