package fastpath

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/enipool/enipool/pkg/bpf"
	"golang.org/x/sys/unix"
)

// Path is the fast path of a node: its program and what that is told, kept in
// the kernel under the names of a folder of a bpf file system.
type Path struct {
	dir     string
	maps    maps
	program *ebpf.Program
	id      ebpf.ProgramID
}

// Open makes the fast path of the folder, or takes over the one that is there. A
// program of another release gives way to this one's; links that carry the old one
// keep it until Attach, and it goes on with what it was told last.
func Open(dir string) (*Path, error) {
	release, err := releaseName()
	if err != nil {
		return nil, err
	}
	p, err := openRelease(dir, release)
	return p, lacksRights(err)
}

func openRelease(dir, release string) (*Path, error) {
	if err := needBPFFS(dir); err != nil {
		return nil, err
	}
	own := filepath.Join(dir, release)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fmt.Errorf("make folder for the fast path: %w", err)
	}
	p := &Path{dir: dir}
	if err := errors.Join(p.openMaps(own), p.openProgram(own)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close closes what this process has open of the fast path, which goes on without it.
func (p *Path) Close() error {
	err := p.maps.close()
	if p.program != nil {
		err = errors.Join(err, p.program.Close())
	}
	return err
}

// needBPFFS tells what is missing where programs can't be kept. The folder need not be there
// yet: then the file system of the first one above it counts.
func needBPFFS(dir string) error {
	const magic = 0xcafe4a11 // BPF_FS_MAGIC
	at := dir
	for {
		var st unix.Statfs_t
		err := unix.Statfs(at, &st)
		if err == nil {
			if int64(st.Type) == magic {
				return nil
			}
			return fmt.Errorf("the fast path needs a bpf file system, and there is none at %s: mount -t bpf bpf %s", at, bpf.FileSystem)
		}
		if at == "/" || !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("read the file system of %s: %w", at, err)
		}
		at = filepath.Dir(at)
	}
}

// releaseName tells one form of program and maps from another.
func releaseName() (string, error) {
	sum := sha256.New()
	code, err := assemble(conntrack{}, descriptors{})
	if err != nil {
		return "", err
	}
	sum.Write(code)
	specs := mapSpecs()
	names := make([]string, 0, len(specs))
	for name := range specs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s := specs[name]
		fmt.Fprintln(sum, name, s.Type, s.KeySize, s.ValueSize, s.MaxEntries, s.Flags)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

func (p *Path) openMaps(dir string) error {
	specs := mapSpecs()
	for name, at := range p.maps.byName() {
		path := filepath.Join(dir, name)
		m, err := ebpf.LoadPinnedMap(path, nil)
		if errors.Is(err, fs.ErrNotExist) {
			spec := specs[name]
			spec.Name = "enipool_" + name
			if m, err = ebpf.NewMap(spec); err == nil {
				*at = m
				err = m.Pin(path)
			}
		}
		if err != nil {
			return fmt.Errorf("open map %s: %w", name, err)
		}
		*at = m
	}
	return nil
}

// programFile is the name of a release's program in its folder.
const programFile = "program"

func (p *Path) openProgram(dir string) error {
	path := filepath.Join(dir, programFile)
	program, err := ebpf.LoadPinnedProgram(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		program, err = p.load()
		if err == nil {
			if err = program.Pin(path); err != nil {
				program.Close()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("open the fast path's program: %w", err)
	}
	p.program = program
	info, err := program.Info()
	if err != nil {
		return fmt.Errorf("read what the fast path's program is: %w", err)
	}
	p.id, _ = info.ID()
	return nil
}

func (p *Path) load() (*ebpf.Program, error) {
	ct, err := readConntrack()
	if err != nil {
		return nil, err
	}
	fd, err := loadProgram(ct, p.maps.descriptors())
	if err != nil {
		return nil, err
	}
	return ebpf.NewProgramFromFD(int(fd))
}
