package fastpath

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/enipool/enipool/pkg/bpf"
	"golang.org/x/sys/unix"
)

// Generation tells one state of what others could decide about packets with from the
// next.
type Generation struct {
	nftables uint32 // counts its changes
	legacy   string // tables of iptables-legacy in use
	ipsec    bool
	ipvs     bool
	programs bool // at netfilter's hooks
}

// Watch reads generations. The zero Watch is ready.
type Watch struct {
	hooks map[uint32]bool // bpf links that are known, and whether they hang where packets are forwarded
}

// Generation reads the generation of the network namespace of the calling thread. It
// is cheap enough to be read several times a second.
func (w *Watch) Generation() (g Generation, err error) {
	if g.programs, err = w.netfilterPrograms(); err != nil {
		return g, err
	}
	if g.nftables, err = nftGeneration(); err != nil {
		return g, err
	}
	tables, err := legacyTables()
	if err != nil {
		return g, err
	}
	g.legacy = strings.Join(tables, " ")
	if g.ipsec, err = ipsecDecides(); err != nil {
		return g, fmt.Errorf("read IPsec policies: %w", err)
	}
	if g.ipvs, err = ipvsServes("/proc/thread-self/net/ip_vs"); err != nil {
		return g, fmt.Errorf("list IPVS services: %w", err)
	}
	return g, nil
}

// netfilterPrograms tells whether bpf programs see forwarded packets at netfilter's
// hooks, in whatever network namespace: the kernel does not say in which. A link is
// opened once; what it is does not change.
func (w *Watch) netfilterPrograms() (found bool, err error) {
	now := make(map[uint32]bool, len(w.hooks))
	for id, ok := uint32(0), true; ; {
		if id, ok, err = bpf.NextLink(id); err != nil {
			return false, lacksRights(fmt.Errorf("list bpf programs at netfilter's hooks: %w", err))
		}
		if !ok {
			break
		}
		forwards, known := w.hooks[id]
		if !known {
			at, netfilter, err := bpf.ReadNetfilterLink(id)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOENT) {
				continue // it is being made, or gone: the next reading tells
			}
			if err != nil {
				return false, fmt.Errorf("read bpf link %d: %w", id, err)
			}
			forwards = netfilter && at.Family != unix.NFPROTO_IPV6 && at.Hook != unix.NF_INET_LOCAL_IN && at.Hook != unix.NF_INET_LOCAL_OUT
		}
		now[id] = forwards
		found = found || forwards
	}
	w.hooks = now
	return found, nil
}

// lacksRights says what is missing where the kernel refuses.
func lacksRights(err error) error {
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	return fmt.Errorf("it takes CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_SYS_ADMIN (in Kubernetes: the component conf/kubernetes/fast-path): %w", err)
}

// ipvsServes tells whether IPVS has services, by the list of them. The list is read
// no further than to the first.
func ipvsServes(path string) (bool, error) {
	const headLines = 3
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the kernel has no IPVS, or has not loaded it
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, 512)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Count(start[:n], []byte("\n")) > headLines, nil
}
