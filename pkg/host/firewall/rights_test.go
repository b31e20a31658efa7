package firewall

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// withoutRights runs fn without any capability.
func withoutRights(t *testing.T, fn func()) {
	t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its lost rights
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		none := [2]unix.CapUserData{}
		err := unix.Capset(&header, &none[0])
		if err == nil {
			fn()
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

func TestMissingRightsAreNotToldAsMissingModules(t *testing.T) {
	nettest.Need(t)
	var err error
	withoutRights(t, func() { err = Works(ipam.Nftables) })
	for backend, text := range map[string]string{"nftables": fmt.Sprint(err), "iptables": adviceFor(errors.New("running [iptables -N X]: Permission denied (you must be root)"), "modules")} {
		if strings.Contains(text, "modules") || !strings.Contains(text, "CAP_NET_ADMIN") {
			t.Errorf("%s: %s", backend, text)
		}
	}
}
