package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// PageFile is a file that comes into being as a whole: beside its place first.
type PageFile struct {
	path string
	temp *os.File
}

// NewPageFile begins the file. That it can tells that its place may be written.
func NewPageFile(path string) (*PageFile, error) {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // a link stays one
	}
	if path == "-" {
		return nil, errors.New("must be a file: stdout has the table")
	}
	if there, err := os.Stat(path); path == "" || err == nil && !there.Mode().IsRegular() {
		return nil, errors.New("must be a file")
	}
	temp, err := os.OpenFile(fmt.Sprintf("%s.%d.tmp", path, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, withoutPath(err)
	}
	return &PageFile{path, temp}, nil
}

// Write writes the file and puts it into its place.
func (p *PageFile) Write(text func(io.Writer) error) error {
	out := bufio.NewWriter(p.temp)
	if err := errors.Join(text(out), out.Flush(), p.temp.Close()); err != nil {
		return withoutPath(err)
	}
	return withoutPath(os.Rename(p.temp.Name(), p.path))
}

// Discard removes what was begun and not put into its place.
func (p *PageFile) Discard() {
	if p == nil {
		return
	}
	_ = p.temp.Close()
	_ = os.Remove(p.temp.Name())
}

// withoutPath leaves out which file it is about.
func withoutPath(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
