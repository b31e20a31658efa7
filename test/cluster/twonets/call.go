package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// call is one of this plugin by a runtime.
type call struct {
	Kubeconfig, ReadinessIndicatorFile string
	CNIDir                             string            // keeps what was attached
	Delegates                          []json.RawMessage // networks of every pod
	RuntimeConfig                      map[string]any    // what the runtime gives for capabilities

	args    *skel.CmdArgs
	plugins *libcni.CNIConfig
}

// attachment is a pod's interface in a network, whose configuration is of one plugin or of a list.
type attachment struct {
	Interface string
	Config    json.RawMessage
}

func newCall(args *skel.CmdArgs) (*call, error) {
	c := &call{CNIDir: "/var/lib/cni/multus", args: args}
	if err := json.Unmarshal(args.StdinData, c); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(c.Delegates) == 0 {
		return nil, errors.New("read the configuration: it has no delegates")
	}
	c.plugins = libcni.NewCNIConfigWithCacheDir(filepath.SplitList(args.Path), c.CNIDir, nil)
	return c, nil
}

// waitUntilReady waits for the first network's file, no longer than a runtime would: the kubelet tries again.
func (c *call) waitUntilReady() error {
	for range 100 {
		if _, err := os.Stat(c.ReadinessIndicatorFile); c.ReadinessIndicatorFile == "" || err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("wait for the first network: there is no %s yet", c.ReadinessIndicatorFile)
}

// runtime is how an attachment's plugins are called. What a pod asks for by a capability, like host ports, it has by its first network alone.
func (c *call) runtime(a attachment) *libcni.RuntimeConf {
	conf := &libcni.RuntimeConf{ContainerID: c.args.ContainerID, NetNS: c.args.Netns, IfName: a.Interface}
	for part := range strings.SplitSeq(c.args.Args, ";") {
		if key, value, ok := strings.Cut(part, "="); ok {
			conf.Args = append(conf.Args, [2]string{key, value})
		}
	}
	if a.Interface == c.args.IfName {
		conf.CapabilityArgs = c.RuntimeConfig
	}
	return conf
}

func (a attachment) network() (*libcni.NetworkConfigList, error) {
	var conf map[string]any
	if err := json.Unmarshal(a.Config, &conf); err != nil {
		return nil, fmt.Errorf("read the network of %s: %w", a.Interface, err)
	}
	if conf["plugins"] == nil {
		conf = map[string]any{"name": conf["name"], "cniVersion": conf["cniVersion"], "plugins": []any{conf}}
	}
	text, err := json.Marshal(conf)
	if err != nil {
		return nil, err
	}
	return libcni.NetworkConfFromBytes(text)
}

func (c *call) file(container string) string { return filepath.Join(c.CNIDir, container) }

func (c *call) save(all []attachment) error {
	text, err := json.Marshal(all)
	return errors.Join(err, os.MkdirAll(c.CNIDir, 0o700), os.WriteFile(c.file(c.args.ContainerID), text, 0o600))
}

func (c *call) saved(container string) (all []attachment, err error) {
	text, err := os.ReadFile(c.file(container))
	if err != nil {
		return nil, fmt.Errorf("read what was attached: %w", err)
	}
	err = json.Unmarshal(text, &all)
	return all, err
}

// known returns the attachments to a network that this plugin made. Not nil: none is a list too.
func (c *call) known(network string) ([]types.GCAttachment, error) {
	known := []types.GCAttachment{}
	files, err := filepath.Glob(c.file("*"))
	for _, f := range files {
		if f == c.file("results") { // the library's folder
			continue
		}
		all, failed := c.saved(filepath.Base(f))
		err = errors.Join(err, failed)
		for _, a := range all {
			list, failed := a.network()
			err = errors.Join(err, failed)
			if failed == nil && list.Name == network {
				known = append(known, types.GCAttachment{ContainerID: filepath.Base(f), IfName: a.Interface})
			}
		}
	}
	return known, err
}
