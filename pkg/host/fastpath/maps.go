package fastpath

import (
	"errors"

	"github.com/cilium/ebpf"
)

// maps is what the agent tells the program.
type maps struct {
	config   *ebpf.Map // one value: see config
	enis     *ebpf.Map // index of an ENI's link -> 1
	pool     *ebpf.Map // address of the pool -> mark of its ENI, 0 for ENI 0
	vpc      *ebpf.Map // ranges whose hosts see a pod's own address
	flows    *ebpf.Map // what the program found out about packets that look alike
	counters *ebpf.Map // counterOut, counterIn, counterLocal -> packets, per CPU
}

// Places in the value of the map config, whose numbers are the kernel's own.
const (
	configUntil = 0  // 8 bytes, nanoseconds of the monotonic clock
	configMask  = 8  // of packet and connection marks
	configSNAT  = 12 // 1: what leaves the VPC has the node's address
	// Twice: jiffies left at least, and how many more.
	configTCP      = 16
	configUDP      = 32
	configEpoch    = 48 // what the program found out under another one holds no more; 0: no packet jumps
	configKnownFor = 52 // jiffies that what it found out holds
	configSize     = 56
)

// What is counted.
const (
	counterOut = iota
	counterIn
	counterLocal
	counters
)

// mapSpecs returns the maps by name. Addresses are in network order.
func mapSpecs() map[string]*ebpf.MapSpec {
	const noPrealloc = 1
	return map[string]*ebpf.MapSpec{
		"config":   {Type: ebpf.Array, KeySize: 4, ValueSize: configSize, MaxEntries: 1},
		"enis":     {Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 256},
		"pool":     {Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 1 << 17, Flags: noPrealloc},
		"vpc":      {Type: ebpf.LPMTrie, KeySize: 8, ValueSize: 4, MaxEntries: 1024, Flags: noPrealloc},
		"flows":    {Type: ebpf.LRUHash, KeySize: flowKeySize, ValueSize: knownSize, MaxEntries: 1 << 14},
		"counters": {Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: counters},
	}
}

func (m *maps) byName() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{"config": &m.config, "enis": &m.enis, "pool": &m.pool, "vpc": &m.vpc, "flows": &m.flows, "counters": &m.counters}
}

// descriptors are the maps as the program's code names them.
type descriptors struct{ config, enis, pool, vpc, flows, counters int }

func (m *maps) descriptors() descriptors {
	return descriptors{m.config.FD(), m.enis.FD(), m.pool.FD(), m.vpc.FD(), m.flows.FD(), m.counters.FD()}
}

func (m *maps) close() (err error) {
	for _, at := range m.byName() {
		if *at != nil {
			err = errors.Join(err, (*at).Close())
		}
	}
	return err
}
