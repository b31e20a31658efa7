package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// programs is the folder with everything that gets measured.
type programs string

func (p programs) path(name string) string { return filepath.Join(string(p), name) }

// cacheTest is the compiled test of package nodecache among the programs.
const cacheTest = "nodecache.test"

// build compiles everything the way releases are compiled. It runs before the
// program hides in namespaces: modules may have to be downloaded.
func build(dir string) error {
	const reference = "github.com/containernetworking/plugins/plugins/"
	for _, pkg := range []string{"./plugins/enipool", "./plugins/enipoolctl", "./test/bench/floor", reference + "main/ptp", reference + "ipam/host-local", reference + "meta/sbr",
		reference + "meta/portmap", reference + "meta/bandwidth"} {
		linked := filepath.Join(dir, "linked")
		if err := goTool("build", "-trimpath", "-gcflags=github.com/vishvananda/...=-l", "-ldflags", "-s -w", "-o", linked, pkg); err != nil {
			return err
		}
		if err := installProgram(linked, filepath.Join(dir, path.Base(pkg))); err != nil {
			return err
		}
	}
	return goTool("test", "-c", "-o", filepath.Join(dir, cacheTest), "./pkg/nodecache")
}

// installProgram copies a program, as an installer does. The linker writes by mapping the
// file, which leaves it in memory in small pieces: to start a program from there takes a
// tenth of a millisecond longer for each megabyte.
func installProgram(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	return os.WriteFile(to, text, 0o755)
}

func goTool(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s (run it in the module's top folder): %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
