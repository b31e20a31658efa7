package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhichPathsNameTheNamespaceOfAProcess(t *testing.T) {
	for path, want := range map[string]int{
		"/proc/1234/ns/net": 1234, "/proc//7/ns/../ns/net": 7,
		"/proc/self/ns/net": 0, "/proc/1234/ns/mnt": 0, "/proc/-1/ns/net": 0, "/proc/1/task/2/ns/net": 0,
		"/run/netns/1": 0, "/host/proc/1/ns/net": 0, "": 0,
	} {
		if pid, ok := pidOfNetns(path); ok != (want > 0) || ok && pid != want {
			t.Errorf("%q is of process %d, %t; want %d", path, pid, ok, want)
		}
	}
}

// machine is a /proc of a machine that runs the processes 1 and 70.
func machine(t *testing.T, change map[string]string) string {
	t.Helper()
	proc := t.TempDir()
	files := map[string]string{"self/ns/pid": "-> " + initialPIDNamespace, "1/ns/net": "-> net:[4026531840]", "70/ns/net": "-> net:[4026532001]",
		"1/mountinfo": "25 1 0:4 net:[4026532003] /run/docker/netns/x rw shared:9 - nsfs nsfs rw\n", "uptime": "1 1\n"}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		err := error(nil)
		if len(text) > 3 && text[:3] == "-> " {
			err = os.Symlink(text[3:], path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

// The namespace was that of process 50, which is gone.
func TestTheNamespaceOfAProcessIsGoneOnlyIfNothingKeepsIt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inode  uint64
		change map[string]string
		gone   bool
	}{
		{"nobody has it", 4026532002, nil, true},
		{"the inode is not known", 0, nil, false},
		{"another process of the pod is in it", 4026532001, nil, false},
		{"it is mounted somewhere", 4026532003, nil, false},
		{"the number begins like one that is mounted", 402653200, nil, true},
		{"another process got the number of the pod's", 4026532002, map[string]string{"50/ns/net": "-> net:[4026531840]"}, true},
		{"the process lives", 4026532002, map[string]string{"50/ns/net": "-> net:[4026532002]"}, false},
		{"a process just ends", 4026532002, map[string]string{"60/status": "Z"}, true},
		{"from a container that has processes of its own", 4026532002, map[string]string{"self/ns/pid": "-> pid:[4026532111]"}, false},
		{"by somebody who does not see the others' processes", 4026532002, map[string]string{"1/ns/net": ""}, false},
		{"by somebody who may not look into one", 4026532002, map[string]string{"60/ns/net": "no link"}, false},
		{"by somebody who does not see the mounts", 4026532002, map[string]string{"1/mountinfo": ""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ofProcessGone(machine(t, tt.change), tt.inode); got != tt.gone {
				t.Errorf("gone: %t, want %t", got, tt.gone)
			}
		})
	}
	if ofProcessGone(filepath.Join(t.TempDir(), "none"), 4026532002) {
		t.Error("gone without a /proc")
	}
}

// Of this machine, whatever it lets us see.
func TestALiveProcessHasItsNamespace(t *testing.T) {
	var own unix.Stat_t
	if err := statOwn(&own); err != nil {
		t.Fatal(err)
	}
	if NetnsGone(fmt.Sprintf("/proc/%d/ns/net", os.Getpid()), own.Ino) {
		t.Error("our own namespace is gone")
	}
}
