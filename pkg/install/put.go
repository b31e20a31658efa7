package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// unfinished ends the name of a file in the making. Runtimes and services look for
// other endings.
const unfinished = ".enipool-new"

// file is a file as it should be.
type file struct {
	path string // on the node
	text []byte
	mode fs.FileMode
}

func hexSum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// putFile makes the file hold the text; after an error it is as it was. It tells whether it had to
// change it.
func (t Tree) putFile(want file) (changed bool, err error) {
	if t.holds(want) {
		return false, nil
	}
	if err := t.replaceFile(want); err != nil {
		return false, fmt.Errorf("write %s: %w", want.path, withRemedy(err))
	}
	return true, nil
}

// holds tells whether the file is a plain one of root's with the mode and the text.
func (t Tree) holds(want file) bool {
	path, err := t.Path(want.path)
	if err != nil {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != want.mode || info.Size() != int64(len(want.text)) {
		return false
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && (s.Uid != 0 || s.Gid != 0) {
		return false
	}
	have, err := os.ReadFile(path)
	return err == nil && bytes.Equal(have, want.text)
}

// replaceFile writes a file beside the final one and renames it: a process that runs or reads the
// old file keeps that, and later ones find the new one.
func (t Tree) replaceFile(want file) (err error) {
	dir, err := t.Target(filepath.Dir(want.path))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.Base(want.path))
	// The rename would fail with "file exists", which does not say what to do.
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder; remove it")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp := filepath.Join(dir, "."+filepath.Base(want.path)+unfinished)
	defer func() {
		if err != nil {
			_ = os.Remove(tmp)
		}
	}()
	if err := t.writeUnfinished(tmp, want); err != nil {
		return err
	}
	if err := t.allowStep("rename " + want.path); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeUnfinished writes the unfinished file and syncs it to the disk.
func (t Tree) writeUnfinished(tmp string, want file) error {
	if err := t.allowStep("create " + want.path); err != nil {
		return err
	}
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() // a second time does no harm
	if err := t.allowStep("fill " + want.path); err != nil {
		return err
	}
	if _, err := out.Write(want.text); err != nil {
		return err
	}
	if err := out.Chmod(want.mode); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := out.Chown(0, 0); err != nil {
			return err
		}
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}

// removeFile removes a file and tells whether it was there.
func (t Tree) removeFile(path string) (bool, error) {
	at, err := t.Path(path)
	if err == nil {
		if _, err = os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	if err == nil {
		err = t.allowStep("remove " + path)
	}
	if err == nil {
		err = os.Remove(at)
	}
	if err == nil {
		err = syncDir(filepath.Dir(at))
	}
	if err != nil {
		return false, fmt.Errorf("remove %s: %w", path, withRemedy(err))
	}
	return true, nil
}

// removeUnfinished removes what runs that were cut off left in the folder.
func (t Tree) removeUnfinished(dir string) error {
	at, err := t.Target(dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(e.Name(), unfinished) {
			if _, err := t.removeFile(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile returns what the node finds at path.
func (t Tree) readFile(path string) ([]byte, error) {
	at, err := t.Target(path)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(at)
}

// makeDir makes the folder and those above it.
func (t Tree) makeDir(dir string) error {
	at, err := t.Target(dir)
	if err == nil {
		err = os.MkdirAll(at, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", dir, withRemedy(err))
	}
	return nil
}

// hasDir tells whether the node has such a folder.
func (t Tree) hasDir(dir string) bool {
	at, err := t.Target(dir)
	if err != nil {
		return false
	}
	info, err := os.Stat(at)
	return err == nil && info.IsDir()
}

func (t Tree) allowStep(change string) error {
	if t.step == nil {
		return nil
	}
	return t.step(change)
}

// syncDir makes what was renamed or removed in the folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// withRemedy adds what a person can do about it.
func withRemedy(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w; make room there and run it again", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w; mount it writable, or name another folder", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; run it as root", err)
	}
	return err
}
