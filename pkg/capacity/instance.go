// Package capacity works out how many nodes and pods the subnets of a cluster
// carry, what is wasted, which limit binds and what is missing for a need. It is the
// planner of `sources/cce-planned-cluster-mode.md`.
package capacity

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// Instance is what a node of the cluster can carry.
type Instance struct {
	eni.Limits
	// MainNIC tells that the instance has no ENIs: pods use the addresses of its
	// main interface, which counts as one ENI here, but not against a quota.
	MainNIC bool
	// Apart tells that ENIs leaves out the primary ENI, which gets no addresses for
	// pods: Baidu's quotas count so, those of AWS don't.
	Apart bool
}

// CloudLimits returns the limits of the instance as its cloud tells them, with the
// primary ENI among its ENIs.
func (m Instance) CloudLimits() eni.Limits {
	l := m.Limits
	if m.Apart {
		l.ENIs, l.NoPrimary = l.ENIs+1, true
	}
	return l
}

// InPrefixes returns the instance whose ENIs have a prefix of that size in the place of
// each secondary address.
func (m Instance) InPrefixes(b eni.Block) Instance {
	m.V4, m.V4Block = 1+m.PerENI(eni.IPv4)*b.Size, b
	return m
}

// Pods returns how many pods the instance can carry: an ENI's primary address is
// none of theirs.
func (m Instance) Pods() int { return m.ENIs * m.PerENI(eni.IPv4) }

// PodsBeside returns how many pods the instance can carry where that number of places of any ENI is kept.
func (m Instance) PodsBeside(places int) int { return m.Pods() - places*max(m.Block(eni.IPv4).Size, 1) }

// Keep returns what of the instance is left for other pods if that number of addresses is kept for pods of topologies, and how
// many ENIs and addresses those are. Where the cloud puts no address of another subnet on an ENI, they are whole ENIs: whole says so.
// Else they are places of any ENI, which the instance that is returned still has: PodsBeside tells for how many pods there is room.
func (m Instance) Keep(places int, whole bool) (general Instance, enis, kept int, err error) {
	per := m.PerENI(eni.IPv4) / max(m.Block(eni.IPv4).Size, 1) // a topology's ENI has single addresses, never prefixes
	switch {
	case places < 0:
		return m, 0, 0, fmt.Errorf("%d: must not be negative", places)
	case places == 0:
		return m, 0, 0, nil
	case !whole:
		if m.PodsBeside(places) < 1 {
			return m, 0, 0, fmt.Errorf("%d: a node carries %d pods, and none is left for others", places, m.Pods())
		}
		return m, 0, places, nil
	}
	enis = ceilDiv(places, per)
	if enis >= m.ENIs {
		return m, 0, 0, fmt.Errorf("%d: are %d whole ENIs of %d addresses, and a node has %d: none is left for other pods", places, enis, per, m.ENIs)
	}
	m.ENIs -= enis
	return m, enis, enis * per, nil
}

// Validate tells why no pod can run on such an instance.
func (m Instance) Validate() error {
	switch {
	case m.ENIs < 1:
		return fmt.Errorf("%d ENIs: a node needs at least 1", m.ENIs)
	case m.V4 < 2:
		return fmt.Errorf("%d addresses an ENI: must be at least 2, as the primary address is for no pod", m.V4)
	case m.ENIs > mostENIs || m.V4 > mostPerENI:
		return fmt.Errorf("%d ENIs of %d addresses: no instance has more than %d of %d", m.ENIs, m.V4, mostENIs, mostPerENI)
	case m.PerENI(eni.IPv4)%max(m.Block(eni.IPv4).Size, 1) != 0:
		return fmt.Errorf("%d addresses an ENI: besides the primary one they must be whole prefixes of %d", m.V4, m.Block(eni.IPv4).Size)
	case m.MainNIC && m.ENIs > 1:
		return fmt.Errorf("%d ENIs: an instance that uses its main interface has no other", m.ENIs)
	}
	return nil
}

// More than any instance has; they keep sums far from overflow and Mix quick.
const (
	mostENIs   = 256
	mostPerENI = 4096
)

// Kind is a family of Baidu's instances; the family decides how many ENIs and
// addresses an instance carries.
type Kind string

// The kinds of instances that the document names.
const (
	BCC     Kind = "bcc"      // a virtual machine
	BBC     Kind = "bbc"      // bare metal, main interface only
	EBC     Kind = "ebc"      // elastic bare metal that takes ENIs
	EBCMain Kind = "ebc-main" // elastic bare metal that takes none
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{BCC, BBC, EBC, EBCMain} }

// NeedsCPUs tells whether the number of CPUs decides how many ENIs it takes.
func (k Kind) NeedsCPUs() bool { return k == BCC || k == EBC }

// NeedsMemory tells whether the memory decides how many addresses an ENI takes.
func (k Kind) NeedsMemory() bool { return k == BCC }

const (
	baiduENIs = 8  // most ENIs of an instance
	baiduIPs  = 40 // most addresses of an ENI, its primary among them
	gib       = 1024
)

// Baidu returns the instance of the kind. An ENI a CPU, at most 8, and addresses by
// memory in MiB; the steps are closed on the right, so 8 GiB has 8 addresses and
// all above has 16.
func Baidu(k Kind, cpus, memory int) (Instance, error) {
	m := Instance{Limits: eni.Limits{ENIs: 1, V4: baiduIPs}, MainNIC: k == BBC || k == EBCMain, Apart: k == BCC || k == EBC}
	if k.NeedsCPUs() {
		if cpus < 1 {
			return Instance{}, fmt.Errorf("%d CPUs: must be at least 1", cpus)
		}
		m.ENIs = min(cpus, baiduENIs)
	}
	if k.NeedsMemory() {
		if memory < gib {
			return Instance{}, fmt.Errorf("%d MiB of memory: must be at least 1 GiB", memory)
		}
		m.V4 = baiduByMemory(memory)
	}
	return m, nil
}

func baiduByMemory(mib int) int {
	switch {
	case mib <= 1*gib:
		return 2
	case mib <= 8*gib:
		return 8
	case mib <= 32*gib:
		return 16
	case mib <= 64*gib:
		return 30
	}
	return baiduIPs
}

// ErrKind is the error for a type of instance whose name doesn't tell its kind.
var ErrKind = errors.New("the name does not tell how many ENIs it takes")

// BaiduType returns the instance that a name like bcc.g5.c16m64 tells: its kind, 16
// CPUs and 64 GiB of memory.
func BaiduType(name string) (Instance, error) {
	kind, rest, _ := strings.Cut(name, ".")
	switch Kind(kind) {
	case BBC:
		return Baidu(BBC, 0, 0)
	case BCC:
		size := rest[strings.LastIndex(rest, ".")+1:]
		cpu, memory, found := strings.Cut(strings.TrimPrefix(size, "c"), "m")
		cpus, err1 := strconv.Atoi(cpu)
		gibs, err2 := strconv.Atoi(memory)
		if found && strings.HasPrefix(size, "c") && err1 == nil && err2 == nil && gibs < 1<<20 {
			return Baidu(BCC, cpus, gibs*gib)
		}
	}
	return Instance{}, fmt.Errorf("%s: %w", name, ErrKind)
}
