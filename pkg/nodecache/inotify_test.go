package nodecache

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// told is one event as inotify(7) writes it.
func told(wd int32, what uint32, name string) []byte {
	e := binary.NativeEndian.AppendUint32(nil, uint32(wd))
	e = binary.NativeEndian.AppendUint32(e, what)
	e = binary.NativeEndian.AppendUint32(e, 0)
	padded := (len(name) + 15) / 16 * 16 // the kernel fills up with zeros
	e = binary.NativeEndian.AppendUint32(e, uint32(padded))
	return append(append(e, name...), make([]byte, padded-len(name))...)
}

func TestNoticesAreReadOneByOne(t *testing.T) {
	i := &inotify{dirs: map[int32]string{1: "/run/a", 2: "/run/b"}}
	for _, e := range [][]byte{told(1, unix.IN_MODIFY, "node.cache"), told(2, unix.IN_DELETE_SELF, ""), told(2, unix.IN_IGNORED, ""),
		told(-1, unix.IN_Q_OVERFLOW, ""), told(2, unix.IN_CREATE, "late"), told(1, unix.IN_CREATE|unix.IN_ISDIR, "sixteen-letters-")} {
		i.told = append(i.told, e...)
	}
	type read struct {
		notice
		lost bool
	}
	for _, want := range []read{
		{notice: notice{"/run/a", "node.cache", unix.IN_MODIFY}},
		{notice: notice{"/run/b", "", unix.IN_DELETE_SELF}},
		{notice: notice{"/run/b", "", unix.IN_IGNORED}},
		{notice: notice{"", "", unix.IN_Q_OVERFLOW}, lost: true},
		{notice: notice{"", "late", unix.IN_CREATE}}, // of a folder that is gone
		{notice: notice{"/run/a", "sixteen-letters-", unix.IN_CREATE | unix.IN_ISDIR}},
	} {
		n, lost, err := i.next()
		if got := (read{n, lost}); err != nil || got != want {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
}
