package fastpath

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// otherReleases returns the programs of other releases that are still pinned in
// the folder, by id.
func (p *Path) otherReleases() (map[ebpf.ProgramID]*ebpf.Program, error) {
	all, err := openPrograms(p.dir)
	if own := all[p.id]; own != nil {
		own.Close()
		delete(all, p.id)
	}
	return all, err
}

// openPrograms opens all that are pinned in the folders below the folder, one per release.
func openPrograms(dir string) (map[ebpf.ProgramID]*ebpf.Program, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", programFile))
	if err != nil {
		return nil, err
	}
	all := map[ebpf.ProgramID]*ebpf.Program{}
	for _, path := range paths {
		program, err := ebpf.LoadPinnedProgram(path, nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("open %s: %w", path, err)
		}
		info, err := program.Info()
		if err != nil {
			return all, fmt.Errorf("look at %s: %w", path, err)
		}
		id, _ := info.ID()
		if all[id] != nil {
			program.Close()
			continue
		}
		all[id] = program
	}
	return all, nil
}

// Remove takes the fast path of the folder off all links and away. Packets go the
// plain way from the first moment on. Nothing to remove is fine.
func Remove(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := stopAll(dir); err != nil {
		return err
	}
	all, err := openPrograms(dir)
	if err != nil {
		return err
	}
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	var errs []error
	for _, l := range links {
		have, err := attached(l.Index)
		if err != nil {
			continue // it is gone
		}
		for _, id := range have {
			if program := all[id]; program != nil {
				errs = append(errs, detach(l.Index, program))
			}
		}
	}
	for _, program := range all {
		errs = append(errs, program.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// stopAll has no packet jump any more, by whatever release's program.
func stopAll(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "config"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		m, err := ebpf.LoadPinnedMap(path, nil)
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		err = m.Put(uint32(0), make([]byte, m.ValueSize()))
		if err = errors.Join(err, m.Close()); err != nil {
			return err
		}
	}
	return nil
}
