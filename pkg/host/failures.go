package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// errIPv6Off is what the kernel means by EACCES, which reads as if rights were missing:
// those would be EPERM.
var errIPv6Off = errors.New("IPv6 is off on this link: set the sysctls net.ipv6.conf.all.disable_ipv6 and that of the link to 0, or use families: [ipv4]")

// failures are what could not be done of many things, each tried whatever became of the others.
type failures struct {
	errs []error
	v6   *netconf.LinkError // IPv6 is off: all that is IPv6's fails in the same way, which is told once
}

// note takes in a failure on a link, "" for none.
func (f *failures) note(dev string, err error) {
	if dev != "" {
		err = &netconf.LinkError{Devs: []string{dev}, Err: err}
	}
	f.errs = append(f.errs, err)
}

// noteAdd takes in what came of an object.
func (f *failures) noteAdd(dev string, err error, verb string, object fmt.Stringer) {
	switch off := errors.Is(err, unix.EACCES) && strings.Contains(object.String(), ":"); {
	case err == nil:
	case !off || dev == "":
		f.note(dev, fmt.Errorf("%s %s: %w", verb, object, err))
	case f.v6 == nil:
		f.v6 = &netconf.LinkError{Devs: []string{dev}, Err: fmt.Errorf("%s %s: %w", verb, object, errIPv6Off)}
		f.errs = append(f.errs, f.v6)
	case !slices.Contains(f.v6.Devs, dev):
		f.v6.Devs = append(f.v6.Devs, dev)
	}
}

// join returns all of them.
func (f *failures) join() error { return errors.Join(f.errs...) }
