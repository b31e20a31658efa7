package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is one of the Network's network namespaces.
type Namespace struct{ isolate.Namespace }

func namespaceNamed(name string) Namespace { return Namespace{isolate.Namespace{Name: name}} }

// openNetlink opens a netlink handle whose socket is in the namespace.
func (ns Namespace) openNetlink() (*netlink.Handle, error) {
	f, err := os.Open(ns.Path())
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	h, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink in %s: %w", ns.Name, isolate.Hint(err))
	}
	return h, nil
}

// setSysctls writes "key value" lines inside the namespace, keys below net.
func (ns Namespace) setSysctls(lines ...string) error {
	return ns.Do(func() error {
		for _, line := range lines {
			key, value, _ := strings.Cut(line, " ")
			// No O_CREATE: /proc would answer it with a permission error that misleads.
			f, err := os.OpenFile(filepath.Join("/proc/sys/net", key), os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString(value)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return fmt.Errorf("set sysctl net/%s to %s in %s: %w", key, value, ns.Name, err)
			}
		}
		return nil
	})
}
