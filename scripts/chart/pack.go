package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// never is the time of every file: the same files make the same archive.
var never = time.Unix(0, 0).UTC()

// pack returns the archive of a chart, whose files lie below its name.
func pack(dir, version, appVersion string) ([]byte, error) {
	files, err := chartFiles(dir)
	if err != nil {
		return nil, err
	}
	about := files["Chart.yaml"]
	for key, value := range map[string]string{"version": version, "appVersion": appVersion} {
		line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
		if len(line.FindAll(about, -1)) != 1 {
			return nil, fmt.Errorf("find %s: Chart.yaml must have one line with it, and one alone", key)
		}
		about = line.ReplaceAllLiteral(about, []byte(key+`: "`+value+`"`))
	}
	files["Chart.yaml"] = about
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	names := []string{"Chart.yaml"} // Helm finds it sooner
	for name := range files {
		if name != "Chart.yaml" {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: "enipool/" + name, Mode: 0o644, Size: int64(len(files[name])), ModTime: never}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err = errors.Join(w.Close(), z.Close())
	return out.Bytes(), err
}

// chartFiles reads a chart's files by name, those that its links lead to too, without those that its .helmignore names: Helm does not
// read that in an archive.
func chartFiles(dir string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, ".helmignore"))
	if err != nil {
		return nil, err
	}
	ignored, err := readIgnored(string(text))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	return files, addFiles(files, dir, "", ignored)
}

func addFiles(files map[string][]byte, dir, below string, ignored func(string) bool) error {
	entries, err := os.ReadDir(filepath.Join(dir, below))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(below, e.Name())
		file := filepath.Join(dir, name)
		info, err := os.Stat(file) // of what a link leads to
		switch {
		case err != nil:
			return err
		case ignored(name):
		case info.IsDir():
			if err := addFiles(files, dir, name, ignored); err != nil {
				return err
			}
		case info.Mode().Type() == fs.FileMode(0):
			if files[name], err = os.ReadFile(file); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is no file", file)
		}
	}
	return nil
}

// readIgnored knows the two kinds of lines that ours has, and refuses others: a name, wherever it is, or a path.
func readIgnored(text string) (func(name string) bool, error) {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.ContainsAny(line, "*?[!") || strings.HasPrefix(line, "/") || strings.HasSuffix(line, "/") {
			return nil, fmt.Errorf(".helmignore: %s: only names and paths are known here", line)
		}
		lines = append(lines, line)
	}
	return func(name string) bool {
		return slices.Contains(lines, name) || slices.Contains(lines, path.Base(name))
	}, nil
}
