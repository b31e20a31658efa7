// Command twonets gives pods several networks by other plugins. The tests call it in the place of Multus's thin plugin where that is not at hand. It is
// our own, after Multus's pages and not its code, and does what conf/00-multus.conflist and pods of two networks need. MULTUS.md has what is believed of
// Multus, and from which page.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: by((*call).add), Check: by((*call).check), Del: by((*call).del), Status: by((*call).status), GC: by((*call).gc)},
		version.All, "a plugin that calls others, for tests")
}

func by(do func(*call) error) func(*skel.CmdArgs) error {
	return func(args *skel.CmdArgs) error {
		c, err := newCall(args)
		if err != nil {
			return err
		}
		return do(c)
	}
}

func (c *call) add() error {
	if err := c.waitUntilReady(); err != nil {
		return err
	}
	all, err := c.attachments()
	if err != nil {
		return err
	}
	if err := c.save(all); err != nil { // before the first one is made: DEL ends what was tried
		return err
	}
	var results []types.Result
	for _, a := range all {
		err := c.each(a, func(ctx context.Context, list *libcni.NetworkConfigList, rt *libcni.RuntimeConf) error {
			result, err := c.plugins.AddNetworkList(ctx, list, rt)
			results = append(results, result)
			return err
		})
		if err != nil {
			return err
		}
	}
	return results[0].Print()
}

func (c *call) del() error {
	all, err := c.saved(c.args.ContainerID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has ended before, or never began
	}
	failed := []error{err}
	for _, a := range slices.Backward(all) {
		failed = append(failed, c.each(a, c.plugins.DelNetworkList))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return os.Remove(c.file(c.args.ContainerID))
}

func (c *call) check() error {
	all, err := c.saved(c.args.ContainerID)
	for _, a := range all {
		err = errors.Join(err, c.each(a, c.plugins.CheckNetworkList))
	}
	return err
}

// each calls the plugins of an attachment.
func (c *call) each(a attachment, do func(context.Context, *libcni.NetworkConfigList, *libcni.RuntimeConf) error) error {
	list, err := a.network()
	if err != nil {
		return err
	}
	if err := do(context.Background(), list, c.runtime(a)); err != nil {
		return fmt.Errorf("call network %s of %s: %w", list.Name, a.Interface, err)
	}
	return nil
}

func (c *call) status() error {
	list, err := attachment{Config: c.Delegates[0]}.network()
	if err != nil {
		return err
	}
	return c.plugins.GetStatusNetworkList(context.Background(), list) // its answer is the answer
}

func (c *call) gc() error {
	list, err := attachment{Config: c.Delegates[0]}.network()
	if err != nil {
		return err
	}
	known, err := c.known(list.Name)
	if err != nil {
		return err
	}
	return c.plugins.GCNetworkList(context.Background(), list, &libcni.GCArgs{ValidAttachments: known})
}
