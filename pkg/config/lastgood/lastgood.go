// Package lastgood keeps the configuration that an agent had in force last. An agent that starts
// while its configuration file is wrong or gone uses that.
package lastgood

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is where the last good text of a configuration file is kept.
type File struct {
	Path string
	Of   string // the absolute path of the configuration file
}

// Beside returns the file beside an agent's own.
func Beside(state, of string) File { return File{Path: state + suffix, Of: of} }

const (
	suffix     = ".good"
	unfinished = ".new" // of a write that is under way, or was cut off
)

// Durable returns the file that outlasts a reboot.
func Durable(state, of string) File { return Beside(Lasting(state), of) }

// Lasting returns the path that outlasts a reboot: where the agent's own file lies in /run, which a reboot
// empties, it is the same place in /var/lib, and else that file's.
func Lasting(state string) string {
	for _, volatile := range []string{"/run/", "/var/run/"} {
		if rest, is := strings.CutPrefix(filepath.Clean(state), volatile); is {
			return "/var/lib/" + rest
		}
	}
	return state
}

// Seen returns the file in which an agent keeps over a reboot what it has seen of its node's object.
func Seen(state string) string { return Lasting(state) + ".seen" }

// The head of the file: what it is, of which configuration file, and the sum of the text below. By
// the sum a file that was cut off is not taken for another configuration.
const (
	explain = "# The configuration that enipool-agent had in force last. It starts with this when its file is\n" +
		"# wrong or gone. Change the file and not this one: what is changed here counts for nothing.\n"
	ofWord  = "# of: "
	sumWord = "# sha256: "
)

func (f File) content(text []byte) []byte {
	sum := sha256.Sum256(text)
	return append([]byte(explain+ofWord+f.Of+"\n"+sumWord+hex.EncodeToString(sum[:])+"\n"), text...)
}

// Holds tells whether the text is what is kept.
func (f File) Holds(text []byte) bool {
	have, err := os.ReadFile(f.Path)
	return err == nil && bytes.Equal(have, f.content(text))
}

// Keep keeps the text. After a crash, or with a full disk, what was kept before stays.
func (f File) Keep(text []byte) error {
	if f.Holds(text) {
		return nil
	}
	if err := f.write(f.content(text)); err != nil {
		return fmt.Errorf("keep the configuration: %w", err)
	}
	return nil
}

func (f File) write(content []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	// One name, so that a crash leaves no more than one: only the agent that keeps the node writes.
	tmp, err := os.OpenFile(f.Path+unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), f.Path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// Read returns the text that is kept. It is fs.ErrNotExist if there is none or if it is another
// file's, and another error if it is not as it was written.
func (f File) Read() ([]byte, error) {
	content, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	head, rest, found := bytes.Cut(content, []byte("\n"+sumWord))
	_, of, isOf := strings.Cut(string(head), "\n"+ofWord)
	_, text, ended := bytes.Cut(rest, []byte("\n"))
	switch {
	case !found || !isOf || !ended || !bytes.Equal(f.withOf(of).content(text), content):
		return nil, fmt.Errorf("%s is damaged or was changed by hand", f.Path)
	case of != f.Of:
		return nil, fmt.Errorf("%s is of another configuration file, %s: %w", f.Path, of, fs.ErrNotExist)
	}
	return text, nil
}

func (f File) withOf(of string) File { return File{f.Path, of} }

// Leftovers returns what there may be of files kept for an agent with that file of its own, by path.
func Leftovers(state string) (paths []string) {
	for _, f := range []File{Durable(state, ""), Beside(state, "")} {
		paths = append(paths, f.Path, f.Path+unfinished)
	}
	paths = append(paths, Seen(state), Seen(state)+unfinished)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Remove removes what is kept, if anything is.
func (f File) Remove() { _ = os.Remove(f.Path) }
