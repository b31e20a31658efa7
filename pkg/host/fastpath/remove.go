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
// Where one can't be opened none is left open.
func openPrograms(dir string) (map[ebpf.ProgramID]*ebpf.Program, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", programFile))
	if err != nil {
		return nil, err
	}
	all := map[ebpf.ProgramID]*ebpf.Program{}
	for _, path := range paths {
		id, program, err := openPinned(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, closePrograms(all))
		}
		if all[id] != nil {
			program.Close()
			continue
		}
		all[id] = program
	}
	return all, nil
}

func openPinned(path string) (id ebpf.ProgramID, program *ebpf.Program, err error) {
	if program, err = ebpf.LoadPinnedProgram(path, nil); err != nil {
		return 0, nil, fmt.Errorf("open %s: %w", path, err)
	}
	info, err := program.Info()
	if err != nil {
		program.Close()
		return 0, nil, fmt.Errorf("read what %s is: %w", path, err)
	}
	id, _ = info.ID()
	return id, program, nil
}

func closePrograms(all map[ebpf.ProgramID]*ebpf.Program) error {
	var errs []error
	for _, program := range all {
		errs = append(errs, program.Close())
	}
	return errors.Join(errs...)
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
	if err := errors.Join(detachAll(all), closePrograms(all)); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// detachAll takes the programs off all links.
func detachAll(all map[ebpf.ProgramID]*ebpf.Program) error {
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
	return errors.Join(errs...)
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
