package fastpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// Grow tells the program what want has more than it knows.
func (p *Path) Grow(want netconf.FastPath) error { return p.tell(want, false) }

// Tell makes the program know want, and nothing else. What it found out before
// about packets is void with the next epoch only; see Vouch.
func (p *Path) Tell(want netconf.FastPath) error { return p.tell(want, true) }

func (p *Path) tell(want netconf.FastPath, remove bool) error {
	links, err := linkIndices(want.ENIs)
	if err != nil {
		return err
	}
	enis := map[uint32]uint32{}
	for _, index := range links {
		enis[uint32(index)] = 1
	}
	pool := map[[4]byte]uint32{}
	for _, a := range want.Pool {
		pool[a.Addr.As4()] = a.Mark
	}
	vpc := map[[8]byte]uint32{}
	for _, r := range want.VPC {
		vpc[trieKey(r)] = 1
	}
	return errors.Join(fill(p.maps.enis, enis, remove), fill(p.maps.pool, pool, remove), fill(p.maps.vpc, vpc, remove))
}

func trieKey(r netip.Prefix) (k [8]byte) {
	binary.NativeEndian.PutUint32(k[:], uint32(r.Bits()))
	addr := r.Masked().Addr().As4()
	copy(k[4:], addr[:])
	return k
}

// fill makes the map hold want, adding first.
func fill[K comparable](m *ebpf.Map, want map[K]uint32, remove bool) error {
	have := map[K]uint32{}
	var k K
	var v uint32
	list := m.Iterate()
	for list.Next(&k, &v) {
		have[k] = v
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("read %s: %w", m, err)
	}
	var errs []error
	for k, v := range want {
		if old, ok := have[k]; !ok || old != v {
			errs = append(errs, m.Put(k, v))
		}
	}
	for k := range have {
		if _, ok := want[k]; !ok && remove {
			errs = append(errs, gone(m.Delete(k)))
		}
	}
	return errors.Join(errs...)
}

func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Vouch has packets jump for the length of time from now on, unless it is told
// again. What the program found out under another epoch is void.
func (p *Path) Vouch(want netconf.FastPath, times Times, epoch uint32, length time.Duration) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	var value [configSize]byte
	binary.NativeEndian.PutUint64(value[configUntil:], uint64(now.Nano())+uint64(length))
	put := func(at int, v uint32) { binary.NativeEndian.PutUint32(value[at:], v) }
	put(configMask, want.Mask)
	put(configEpoch, epoch)
	put(configKnownFor, uint32(want.Known/times.Tick))
	if want.SNAT {
		put(configSNAT, 1)
	}
	for at, pair := range map[int][2]time.Duration{configTCP: {times.TCP, times.TCPUnacknowledged}, configUDP: {times.UDPStream, times.UDP}} {
		for i, length := range pair {
			full := uint32(length / times.Tick)
			span := min(uint32(freshFor/times.Tick), full)
			put(at+8*i, full-span)
			put(at+8*i+4, span)
		}
	}
	return p.maps.config.Put(uint32(0), value)
}

// Stop has no packet jump any more, from this moment on.
func (p *Path) Stop() error { return p.maps.config.Put(uint32(0), [configSize]byte{}) }

// freshFor is how long packets of a connection jump after conntrack saw one.
const freshFor = time.Second

// Times are how long conntrack remembers connections.
type Times struct {
	Tick                   time.Duration // of its clock, a jiffy
	TCP, TCPUnacknowledged time.Duration // established
	UDP, UDPStream         time.Duration // without and with answers
}
