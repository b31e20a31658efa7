package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// most is how many bytes of a part are kept: the last ones of a file, the first ones of what a command prints.
const most = 4 << 20

// packFiles writes the files as a tar.gz, below one folder.
func packFiles(out io.Writer, folder string, at time.Time, all []content) error {
	zipped := gzip.NewWriter(out)
	files := tar.NewWriter(zipped)
	for _, c := range all {
		head := &tar.Header{Name: path.Join(folder, c.name), Mode: 0o600, Size: int64(len(c.text)), ModTime: at, Format: tar.FormatPAX}
		if err := files.WriteHeader(head); err != nil {
			return fmt.Errorf("pack %s: %w", c.name, err)
		}
		if _, err := files.Write(c.text); err != nil {
			return fmt.Errorf("pack %s: %w", c.name, err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}

// writeFile makes a new file that only its owner may read. One that is there already is not replaced, and half of one is not left.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the bundle: %w; --file names another place", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// readEnd returns the end of a regular file, from the beginning of a line on.
func readEnd(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe's other end is not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close()
	is, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !is.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: it is no regular file", name)
	}
	cut := is.Size() > most
	if cut {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if cut { // half a line may be half a secret without its key
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	return text, err
}

// limited keeps the beginning of what is written.
type limited struct{ bytes.Buffer }

// Write takes all, and keeps what there is room for.
func (l *limited) Write(text []byte) (int, error) {
	l.Buffer.Write(text[:min(len(text), max(0, most-l.Len()))])
	return len(text), nil
}
