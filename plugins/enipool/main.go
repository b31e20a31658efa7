// The Go runtime reads cgroups to size itself; here is nothing to size.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command enipool is the CNI plugin: it gives pods addresses of the node's ENIs.
// It runs for milliseconds at every start and end of a pod, so it links nothing
// but the protocol's types, netlink and the node cache.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/enipool/enipool/pkg/cni"
	"github.com/enipool/enipool/pkg/nodecache"
)

// release is set by the linker.
var release = "unreleased"

// statusTimeout bounds STATUS, which runtimes call every few seconds and wait
// for without a limit of their own.
const statusTimeout = time.Second

// The main goroutine stays on the process's first thread, which only an init can
// ask for: what netlink does to the thread's namespace is seen by nobody else, and
// the system calls of a call come in one order, which the crash tests count on.
func init() { runtime.LockOSThread() }

func main() {
	// A process that runs for milliseconds has no garbage worth collecting.
	debug.SetGCPercent(-1)
	// If the runtime has died, writing the result must fail with an error, so that the ADD is undone,
	// and not end this process by a signal.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(runCommand())
}

func runCommand() int {
	call := &invocation{command: os.Getenv("CNI_COMMAND"), getenv: os.Getenv}
	// An error before the configuration is read must name a version, too.
	call.conf.CNIVersion = version.Current()
	switch call.command {
	case "":
		if wrong := strayArgument(os.Args[1:]); wrong != "" {
			fmt.Fprintln(os.Stderr, wrong)
			return 1
		}
		fmt.Fprintf(os.Stderr, "CNI plugin enipool %s\nCNI protocol versions supported: %s\n", release, strings.Join(version.All.SupportedVersions(), ", "))
		return 0
	case "VERSION":
		if version.All.Encode(os.Stdout) != nil {
			return 1
		}
		return 0
	}
	err := call.readCall(os.Stdin)
	if err == nil {
		err = call.runFlow(context.Background())
	}
	if err != nil {
		printError(os.Stdout, err, call.conf.CNIVersion)
		return 1
	}
	return 0
}

// strayArgument is what a person is told who gives the plugin a word, and would take what it prints for the word's effect. Runtimes give none.
func strayArgument(args []string) string {
	if len(args) == 0 || len(args) == 1 && args[0] == "--version" {
		return ""
	}
	return fmt.Sprintf("enipool: takes --version alone, and not %q: container runtimes call it, with CNI_COMMAND in its environment; enipoolctl is for people", args[len(args)-1])
}

// runFlow runs the flow that was asked for.
func (i *invocation) runFlow(ctx context.Context) *types.Error {
	began := time.Now()
	log, closeLog := openLog(i.conf)
	defer closeLog()
	plugin := &cni.Plugin{Cache: nodecache.Cache{Path: i.conf.CachePath}, Now: nodecache.SinceBoot, Log: log}
	var err error
	switch i.command {
	case "ADD":
		err = plugin.Add(ctx, i.request, func(res *current.Result) error { return printResult(os.Stdout, res, i.conf.CNIVersion) })
	case "DEL":
		err = plugin.Del(ctx, i.request)
	case "CHECK":
		err = plugin.Check(ctx, i.request)
	case "GC":
		err = plugin.GC(ctx, i.request)
	case "STATUS":
		plugin.Cache.LockTimeout = statusTimeout
		var warning string
		if warning, err = plugin.Status(ctx, i.request); warning != "" {
			log.Warn("node is ready, but a pod would have to wait for an address", "cause", warning)
		}
	}
	if err == nil {
		return nil
	}
	log.Info("call failed", "key", i.request.Owner.Key.String(), "took", time.Since(began).Round(10*time.Microsecond), "error", err)
	return cni.Error(err)
}
