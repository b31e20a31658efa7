// Command enipool is the CNI plugin: it gives pods addresses of the node's ENIs.
// It runs for milliseconds at every start and end of a pod, so it links nothing
// but the protocol, netlink and the node cache.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/enipool/enipool/pkg/cni"
	"github.com/enipool/enipool/pkg/config"
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
	// A process of some milliseconds has no garbage worth collecting.
	debug.SetGCPercent(-1)
	// A runtime that died must be seen as a failed write, which is undone.
	signal.Ignore(syscall.SIGPIPE)
	// skel looks at the namespace after the call, when it is too late: our calls
	// look first, and to a DEL the node's own namespace is no error at all.
	os.Setenv("CNI_NETNS_OVERRIDE", "1")
	i := &invocation{cniVersion: version.Current()}
	err := skel.PluginMainFuncsWithError(i.funcs(), version.All, "CNI plugin enipool "+release)
	if err != nil {
		printError(os.Stdout, err, i.cniVersion)
		os.Exit(1)
	}
}

// invocation is the one call that this process serves.
type invocation struct {
	cniVersion string // of the configuration, once it is read
}

func (i *invocation) funcs() skel.CNIFuncs {
	return skel.CNIFuncs{
		Add: i.strict(func(ctx context.Context, p *cni.Plugin, r cni.Request) error {
			return p.Add(ctx, r, func(res *current.Result) error { return types.PrintResult(res, r.Conf.CNIVersion) })
		}),
		Del: i.lenient(func(ctx context.Context, p *cni.Plugin, r cni.Request) error {
			return p.Del(ctx, r)
		}),
		Check: i.strict(func(ctx context.Context, p *cni.Plugin, r cni.Request) error {
			return p.Check(ctx, r)
		}),
		GC: i.strict(func(ctx context.Context, p *cni.Plugin, r cni.Request) error {
			return p.GC(ctx, r)
		}),
		Status: i.strict(func(ctx context.Context, p *cni.Plugin, r cni.Request) error {
			p.Cache.LockTimeout = statusTimeout
			warning, err := p.Status(ctx, r)
			if warning != "" {
				p.Log.Warn("node is ready, but a pod would have to wait for an address", "reason", warning)
			}
			return err
		}),
	}
}

type flow func(context.Context, *cni.Plugin, cni.Request) error

// strict fails for anything wrong in the configuration or the environment.
func (i *invocation) strict(f flow) func(*skel.CmdArgs) error { return i.call(f, false) }

// lenient serves what it can: a DEL must not fail for a bad option.
func (i *invocation) lenient(f flow) func(*skel.CmdArgs) error { return i.call(f, true) }

func (i *invocation) call(f flow, lenient bool) func(*skel.CmdArgs) error {
	return func(args *skel.CmdArgs) error {
		conf, confErr := config.ParsePlugin(args.StdinData)
		i.cniVersion = conf.CNIVersion
		log, closeLog := openLog(conf)
		defer closeLog()
		r, err := cni.NewRequest(conf, confErr, args.ContainerID, args.Netns, args.IfName, args.Args, lenient)
		if err == nil {
			p := &cni.Plugin{Cache: nodecache.Cache{Path: conf.CachePath}, Now: nodecache.SinceBoot, Log: log}
			err = f(context.Background(), p, r)
		}
		if err == nil {
			return nil
		}
		log.Info("call failed", "container", args.ContainerID, "error", err)
		return cni.Error(err)
	}
}
