package vpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/isolate"
	"golang.org/x/sys/unix"
)

// place is the folder of a VPC. Who serves it holds the lock of the folder.
type place struct{ folder string }

// defaultFolder is one that a sandbox shows too: in it /run is another.
func defaultFolder() string {
	if os.Geteuid() == 0 {
		return "/run/enipool-vpc"
	}
	return filepath.Join(os.TempDir(), "enipool-vpc-"+strconv.Itoa(os.Geteuid()))
}

func (at *place) pathOf(names ...string) string {
	return filepath.Join(append([]string{at.folder}, names...)...)
}

func (at *place) socketPath() string              { return at.pathOf("vpc.sock") }
func (at *place) logPath() string                 { return at.pathOf("serve.log") }
func (at *place) cachePath(node string) string    { return at.pathOf(node, "node.cache") }
func (at *place) statePath(node string) string    { return at.pathOf(node, "agent.json") }
func (at *place) configPath(node string) string   { return at.pathOf(node, "agent.yaml") }
func (at *place) agentLogPath(node string) string { return at.pathOf(node, "agent.log") }

// served is what a server tells of itself, in a file of the folder.
type served struct {
	PID     int      `json:"pid"`
	Sandbox bool     `json:"sandbox"` // its namespaces are those of a sandbox, which only its processes see
	Nodes   []string `json:"nodes"`
	Ready   bool     `json:"ready"`
}

// networkName begins the names of the VPC's namespaces. Several VPCs may be there, in folders of their own.
func (s served) networkName() string { return "sim" + strconv.Itoa(s.PID) }

func (s served) namespace(name string) isolate.Namespace {
	return isolate.Namespace{Name: s.networkName() + "-" + name}
}

// takeLock makes the folder and locks it for as long as the file is open.
func (at *place) takeLock() (*os.File, error) {
	if err := os.MkdirAll(at.folder, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(at.folder)
	if err != nil {
		return nil, err
	}
	// In a folder of all, such as /tmp, another user may have made one of that name.
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return nil, errors.Join(fmt.Errorf("%s must be a folder that is yours and that nobody else writes to; --folder names another", at.folder), err, f.Close())
	}
	if err := filelock.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(errServed(at), f.Close())
	}
	return f, nil
}

func errServed(at *place) error {
	return fmt.Errorf("a VPC is served already (%s): `enipoolctl vpc stop` ends it, --folder makes another", at.folder)
}

// noteServed writes what a server tells of itself.
func (at *place) noteServed(s served) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	fresh := at.pathOf(".serve.json")
	return errors.Join(os.WriteFile(fresh, text, 0o600), os.Rename(fresh, at.pathOf("serve.json")))
}

// readServed returns what the last server has told, the zero served if there was none.
func readServed(at *place) (s served, err error) {
	text, err := os.ReadFile(at.pathOf("serve.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", at.pathOf("serve.json"), err)
	}
	return s, nil
}

// serving returns what the server tells that serves now.
func (at *place) serving() (s served, is bool, err error) {
	if s, err = readServed(at); err != nil || s.PID == 0 {
		return s, false, err
	}
	f, err := at.takeLock()
	if err != nil {
		return s, true, nil
	}
	return s, false, f.Close()
}
