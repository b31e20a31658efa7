package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/pkg/mounts"
	"github.com/enipool/enipool/pkg/nodecache"
)

// File is a Store in a file of this boot.
type File struct{ Path string }

// Disk is a Store in a file that outlasts boots.
type Disk struct{ Path string }

// Load returns what was saved, nil if nothing was.
func (d Disk) Load() ([]byte, error) {
	text, err := os.ReadFile(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Save writes by temporary file and rename as File does, and waits for the disk: a node that loses power boots as well.
func (d Disk) Save(text []byte) error { return mounts.Explain(d.Path, d.save(text)) }

func (d Disk) save(text []byte) error {
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o700); err != nil {
		return err
	}
	tmp, err := os.OpenFile(d.Path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(text, '\n'))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), d.Path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// onDisk is what stands in the file. Its times are since boot, so after a reboot
// it says nothing.
type onDisk struct {
	Boot   string          `json:"boot"`
	Memory json.RawMessage `json:"memory"`
}

// Load returns what was saved in this boot, nil if nothing was.
func (f File) Load() ([]byte, error) {
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var d onDisk
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Path, err)
	}
	boot, err := nodecache.BootID()
	if err != nil || d.Boot != boot {
		return nil, err
	}
	return d.Memory, nil
}

// Save writes by temporary file and rename, so that a crash leaves the old one or
// the new one.
func (f File) Save(memory []byte) error { return mounts.Explain(f.Path, f.save(memory)) }

func (f File) save(memory []byte) error {
	boot, err := nodecache.BootID()
	if err != nil {
		return err
	}
	text, err := json.Marshal(onDisk{boot, memory})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	tmp := f.Path + ".new"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, f.Path)
}
