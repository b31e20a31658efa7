package cni

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// A node whose cache can't be written starts no pod: STATUS says so, and the ADD names the
// file system and what to do, once.
func TestAReadOnlyFileSystemIsNamedByAddAndStatus(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	folder := filepath.Dir(l.Cache.Path)
	if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("no mounts here: %v", err)
	}
	defer func() { _ = unix.Unmount(folder, unix.MNT_DETACH) }()
	if err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("no read-only mounts here: %v", err)
	}
	todo := "at " + folder + " is mounted read-only: mount -o remount,bind,rw " + folder
	_, err := l.add("a", nettest.NewNetns(t, "a").Path, plain)
	if err == nil || Error(err).Code != 5 || saidTimes(err, todo) != 1 {
		t.Errorf("ADD says %d times what to do: %v", saidTimes(err, todo), Error(err))
	}
	r, err := l.request("", "", `{"cniVersion":"1.1.0","name":"pods","type":"enipool"}`, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Status(t.Context(), r); err == nil || Error(err).Code != 50 || saidTimes(err, todo) != 1 {
		t.Errorf("STATUS says %d times what to do: %v", saidTimes(err, todo), Error(err))
	}
}

// saidTimes counts what people read of err: runtimes show message and details one after the other.
func saidTimes(err error, todo string) int {
	return strings.Count(Error(err).Msg+"; "+Error(err).Details, todo)
}
