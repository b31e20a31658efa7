package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// never is the time of every file: the same files make the same image.
var never = time.Unix(0, 0).UTC()

// layer makes the layer of one COPY, a tar, from files below the context.
func (c copied) layer(context, arch string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if dir := strings.Trim(c.to, "/"); dir != "" {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: never}); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(slices.Values(c.from)) {
		file := filepath.Join(context, name)
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := runs(text, arch); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		mode := int64(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		if err := put(w, strings.TrimPrefix(path.Join(c.to, path.Base(name)), "/"), mode, text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// put writes a file of root's into a tar.
func put(w *tar.Writer, name string, mode int64, text []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(text)), ModTime: never}); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}

// machines are those of the architectures by their Go names.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// runs returns an error for a program that would not run in the image: one of another
// architecture, or one that looks for libraries.
func runs(text []byte, arch string) error {
	if !bytes.HasPrefix(text, []byte(elf.ELFMAG)) {
		return nil // no program
	}
	p, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if want, known := machines[arch]; known && p.Machine != want {
		return fmt.Errorf("it is for %v; build it with GOARCH=%s", p.Machine, arch)
	}
	if slices.ContainsFunc(p.Progs, func(s *elf.Prog) bool { return s.Type == elf.PT_INTERP }) {
		return errors.New("it needs libraries, and the image has none; build it with CGO_ENABLED=0")
	}
	return nil
}
