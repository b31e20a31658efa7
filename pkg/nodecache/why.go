package nodecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/mounts"
)

// maxWhy is how many bytes of the agent's words are shown: they become part of an error
// message, which the kubelet puts into an event of the pod.
const maxWhy = 400

func (c Cache) whyFile() string { return c.Path + ".why" }

// Why returns what the agent last said about why the pool has not more addresses,
// or "". It is one line of printable ASCII of at most 400 bytes.
func (c Cache) Why() string {
	info, err := os.Stat(c.whyFile())
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSize {
		return ""
	}
	text, err := os.ReadFile(c.whyFile())
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return oneLine(line)
}

// Sizing is how the words begin that an agent gives to SetWhy, once it knows its target and what the node can hold at most, in slots.
func Sizing(target, most int) string { return fmt.Sprintf("target %d, at most %d", target, most) }

// Most returns how many slots the node can hold at most, as the agent last said, false if it did not say so.
func (c Cache) Most() (most int, told bool) {
	text, is := strings.CutPrefix(c.Why(), "target ")
	_, text, _ = strings.Cut(text, ", at most ")
	text, _, _ = strings.Cut(text, ",")
	most, err := strconv.Atoi(text)
	return most, is && err == nil
}

// SetWhy says for all ADDs to come why the pool has not more addresses, "" that nothing is
// wrong. Nothing is written if that is what was said before.
func (c Cache) SetWhy(text string) error {
	text = oneLine(text)
	err := error(nil)
	switch {
	case text == "":
		if err = os.Remove(c.whyFile()); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	case text != c.Why():
		err = writeWhole(c.whyFile()+unfinished, c.whyFile(), text+"\n")
	}
	if err != nil {
		return fmt.Errorf("say why the pool is as it is: %w", mounts.Explain(c.whyFile(), err))
	}
	return nil
}

// oneLine makes text one line of at most maxWhy printable bytes.
func oneLine(text string) string { return plainLine(text, maxWhy) }

// plainLine makes text one line of at most most printable bytes, its words a blank
// apart.
func plainLine(text string, most int) string {
	line := []byte(strings.Join(strings.Fields(text), " "))
	line = line[:min(len(line), most)]
	for i, c := range line {
		if c < ' ' || c > '~' {
			line[i] = '?'
		}
	}
	return strings.TrimSpace(string(line))
}

// writeWhole makes path hold text: its readers see what was there before or all of
// the text. tmp is a path beside it that nobody else writes to.
func writeWhole(tmp, path, text string) error {
	err := os.WriteFile(tmp, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}
