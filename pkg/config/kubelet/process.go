package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// process is the kubelet as its command line describes it. Without one only root
// is known.
type process struct {
	root string // what all paths are below
	pid  int    // 0 for none

	flag      said   // --max-pods
	config    string // --config
	configDir string // --config-dir
}

// find returns the node's kubelet. Where there are several, as on a machine that
// plays several nodes, it is the oldest.
func find(root string) (process, bool) {
	entries, err := os.ReadDir(filepath.Join(root, "proc"))
	if err != nil {
		return process{root: root}, false
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		dir := filepath.Join(root, "proc", strconv.Itoa(pid))
		comm, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil || strings.TrimSpace(string(comm)) != "kubelet" {
			continue
		}
		// It is empty once the process ends.
		if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && len(line) > 0 {
			k := process{root: root, pid: pid}
			k.parse(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
			return k, true
		}
	}
	return process{root: root}, false
}

// parse reads the flags as the kubelet does: the last one counts, its value stands
// behind "=" or comes next, and "_" is as good as "-".
func (k *process) parse(args []string) {
	for i, arg := range args {
		if arg == "--" {
			return
		}
		name, value, inside := strings.Cut(arg, "=")
		if !inside && i+1 < len(args) {
			value = args[i+1]
		}
		switch strings.ReplaceAll(name, "_", "-") {
		case "--max-pods":
			if n, err := strconv.ParseInt(value, 0, 32); err == nil {
				k.flag = said{int(n), "kubelet --max-pods"}
			}
		case "--config":
			k.config = value
		case "--config-dir":
			k.configDir = value
		}
	}
}

// paths returns where a file that the kubelet names may be found from here. The kubelet may have
// another root and working directory, which /proc shows; where that may not be read the name is
// taken as this process's own.
func (k process) paths(name string) []string {
	own := filepath.Join(k.root, name)
	if k.pid == 0 {
		return []string{own}
	}
	dir := filepath.Join(k.root, "proc", strconv.Itoa(k.pid))
	if !filepath.IsAbs(name) {
		return []string{filepath.Join(dir, "cwd", name), own}
	}
	return []string{filepath.Join(dir, "root", name), own}
}
