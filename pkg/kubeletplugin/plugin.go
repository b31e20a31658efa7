// Package kubeletplugin is what a kubelet asks to prepare the ResourceClaims of its pods, as the driver of the node's devices. There is
// nothing to do for an address that is reserved: a claim is a count. So all that it does is to remember which claims the kubelet has.
//
// It is upon gRPC and the kubelet's own API alone. The helper of k8s.io/dynamic-resource-allocation takes a client that knows all kinds
// of Kubernetes, which keep some megabytes of each node's memory.
package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/enipool/enipool/pkg/devices"
)

// again is how long what could not be served waits until it is tried again.
const again = 10 * time.Second

// Options say whose plugin it is.
type Options struct {
	Driver string // its name
	Folder string // of the kubelet, as /var/lib/kubelet
	// On tells whether claims are prepared. A plugin that is off only has those unprepared that are left of before, and ends then.
	On bool
	// Lookup returns the claim with the devices that the scheduler has allocated to it.
	Lookup func(ctx context.Context, claim devices.Claim) (devices.Claim, error)
	Log    *slog.Logger
}

// Plugin serves the kubelet of its node. Its methods may be called from several goroutines.
type Plugin struct {
	options    Options
	records    *records
	left       bool // an agent before had devices here
	registered atomic.Bool
}

// New returns the plugin with the claims that an agent before has prepared. It serves nobody yet.
func New(options Options) *Plugin {
	p := &Plugin{options: options}
	var err error
	if p.records, p.left, err = openRecords(filepath.Join(p.pluginFolder(), recordsName)); err != nil {
		options.Log.Warn("the claims that were prepared before are not known; the kubelet has them prepared again when it starts", "error", err)
	}
	return p
}

// pluginFolder is where the plugin's own socket is.
func (p *Plugin) pluginFolder() string {
	return filepath.Join(p.options.Folder, "plugins", p.options.Driver)
}

// socketPath is that socket, and registrationPath the one at which the kubelet finds it.
func (p *Plugin) socketPath() string { return filepath.Join(p.pluginFolder(), "dra.sock") }

func (p *Plugin) registrationPath() string {
	return filepath.Join(p.options.Folder, "plugins_registry", p.options.Driver+"-reg.sock")
}

// Left tells whether devices of an agent before may still be shown though the plugin is off.
func (p *Plugin) Left() bool { return p.left && !p.options.On }

// Claims returns the claims that are prepared. The slice may be kept but not changed.
func (p *Plugin) Claims() []devices.Claim { return p.records.listClaims() }

// Registered tells whether the kubelet knows the plugin.
func (p *Plugin) Registered() bool { return p.registered.Load() }

// Changed returns the channel that gets a value when Claims or Registered has another answer.
func (p *Plugin) Changed() <-chan struct{} { return p.records.changed }

// setRegistered notes what the kubelet says.
func (p *Plugin) setRegistered(is bool) {
	if p.registered.Swap(is) != is {
		select {
		case p.records.changed <- struct{}{}:
		default:
		}
	}
}

// Run serves until ctx ends; a plugin that is off until nothing is prepared any more. What keeps it from serving is told once, and
// tried again: pods without claims do not need it.
func (p *Plugin) Run(ctx context.Context) {
	if !p.options.On && !p.left {
		return
	}
	said := ""
	for ctx.Err() == nil {
		if !p.options.On && len(p.Claims()) == 0 {
			if err := p.records.removeFile(); err != nil {
				p.options.Log.Warn("the file of prepared claims can't be removed", "error", err)
			}
			return
		}
		err := p.serveSockets(ctx)
		if err == nil {
			continue
		}
		if text := err.Error(); text != said {
			said = text
			p.options.Log.Warn("the kubelet can't be served: pods with claims for addresses don't start on this node", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// prepareFolder sees that there is a place for the sockets, and removes those of an agent that was killed.
func (p *Plugin) prepareFolder() error {
	if _, err := os.Stat(filepath.Dir(p.registrationPath())); err != nil {
		return fmt.Errorf("find the kubelet's folder for plugins: %w; kubernetes.kubeletFolder names its folder, and conf/kubernetes/dra mounts it", err)
	}
	if err := os.MkdirAll(p.pluginFolder(), 0o750); err != nil {
		return fmt.Errorf("make the plugin's folder: %w", err)
	}
	for _, path := range []string{p.registrationPath(), p.socketPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the socket of an agent before: %w", err)
		}
	}
	return p.records.keepFile()
}
