package install

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program is what a plugin's file tells about itself.
type program struct {
	release  string   // like "v1.9.1", "" where it can't be told
	versions []string // of the protocol; nil where it does not answer
	err      error    // why it does not
}

// askTime is how long a plugin may take to tell its versions, on a node that is busy booting.
const askTime = 30 * time.Second

// askProgram runs the program at path, as seen from here, in the two ways that every
// plugin answers and that change nothing.
func (t Tree) askProgram(ctx context.Context, path string) program {
	var found program
	out, err := t.runProgram(ctx, path, "CNI_COMMAND=VERSION")
	var answer struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	found.versions, found.err = answer.SupportedVersions, err
	if err == nil {
		about, _ := t.runProgram(ctx, path) // older ones don't tell
		found.release = findRelease(string(about))
	}
	if info, err := buildinfo.ReadFile(path); err == nil && found.release == "" {
		found.release = findRelease(info.Main.Version)
	}
	return found
}

// runProgram returns all that the program prints.
func (t Tree) runProgram(ctx context.Context, path string, env ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	path, err := filepath.Abs(path) // else a bare name would be looked up in PATH
	if err != nil {
		return nil, err
	}
	try := func(path, root string) ([]byte, error) {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, path)
		cmd.Env, cmd.Stdout, cmd.Stderr = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, env...), &out, &out
		cmd.WaitDelay = time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		err := cmd.Run()
		return out.Bytes(), err
	}
	out, err := try(path, "")
	below, isBelow := strings.CutPrefix(path, filepath.Clean(t.Root)+"/")
	if errors.Is(err, fs.ErrNotExist) && isBelow {
		// A dynamically linked program may lack its loader and libraries here: the node has them.
		if more, err2 := try("/"+below, t.Root); !errors.Is(err2, fs.ErrNotExist) {
			out, err = more, err2
		}
	}
	if err != nil && len(out) > 0 {
		err = fmt.Errorf("%w: %s", err, firstLine(string(out)))
	}
	return out, err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

var number = regexp.MustCompile(`\bv?([0-9]+)\.([0-9]+)\.([0-9]+)`)

// findRelease finds the first release number in the text.
func findRelease(text string) string {
	m := number.FindStringSubmatch(firstLine(text))
	if m == nil {
		return ""
	}
	return "v" + strings.Join(m[1:], ".")
}

// isOlder tells whether a is a release before b. What is not known is not older.
func isOlder(a, b string) bool {
	return a != "" && b != "" && slices.CompareFunc(releaseNumbers(a), releaseNumbers(b), cmp.Compare[int]) < 0
}

func releaseNumbers(release string) []int {
	var list []int
	for _, m := range number.FindStringSubmatch(release)[1:] {
		n, _ := strconv.Atoi(m) // only digits; absurdly long ones count as the largest
		list = append(list, n)
	}
	return list
}

// lacks returns those of the wanted protocol versions that the program does not
// speak.
func (p program) lacks(want []string) []string {
	var list []string
	for _, v := range want {
		if !slices.Contains(p.versions, v) {
			list = append(list, v)
		}
	}
	return list
}
