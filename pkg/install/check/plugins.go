package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/install"
)

// severityBeside is how bad another main plugin on the node is. Where enipool is installed already
// somebody has decided for both, and an agent that starts again must not be kept from it: then it is a
// warning.
func (n Needs) severityBeside(tree install.Tree) install.What {
	for _, dir := range []string{n.ConfDir, install.StateDir} {
		if exists(tree, filepath.Join(dir, install.ConflistName)) {
			return install.Warning
		}
	}
	return install.MustFix
}

// findConfigurations names the network configurations that a runtime would use instead of enipool's.
func findConfigurations(tree install.Tree, needs Needs) []install.Line {
	dir, err := tree.Target(needs.ConfDir)
	if err != nil {
		return []install.Line{notTried("look for other network configurations", err)}
	}
	entries, err := os.ReadDir(dir) // by name, as runtimes read them
	if err != nil && !os.IsNotExist(err) {
		return []install.Line{notTried("look for other network configurations", err)}
	}
	var before, chained []string
	var lines []install.Line
	for _, entry := range entries {
		if entry.IsDir() || !install.IsConfiguration(entry.Name()) || entry.Name() >= install.ConflistName {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err == nil {
			var whole map[string]json.RawMessage
			err = json.Unmarshal(text, &whole)
		}
		multus, isMultus := findMultus(text)
		switch {
		case isMultus:
			lines = append(lines, needs.describeMultus(tree, entry.Name(), multus))
		case errors.Is(err, fs.ErrPermission): // the runtime may read it
			lines = append(lines, notTried("look for other network configurations", err))
		case err != nil:
			lines = append(lines, install.Linef(needs.severityBeside(tree), "%s comes before %s and can't be read as a network configuration: %v. As long as it is there containerd takes no other one, "+
				"and no pod starts; CRI-O passes over it. Repair it, or move it away", filepath.Join(needs.ConfDir, entry.Name()), install.ConflistName, err))
		case callsUs(text):
			chained = append(chained, entry.Name())
		default:
			before = append(before, entry.Name())
		}
	}
	if len(before) > 0 {
		lines = append(lines, install.Linef(needs.severityBeside(tree), "in %s runtimes take the first network configuration, and before %s there is %s: "+
			"its plugin would go on serving new pods, and no pod gets an address of enipool. Take that plugin off the cluster, or off this node, and move the file away; %s",
			needs.ConfDir, install.ConflistName, strings.Join(before, ", "), needs.describeGoingOn(tree)))
	}
	if len(chained) > 0 {
		lines = append(lines, install.Linef(install.Warning, "in %s runtimes take the first network configuration, and before %s there is %s, which calls enipool too: ours is not used until that is moved away",
			needs.ConfDir, install.ConflistName, strings.Join(chained, ", ")))
	}
	if len(lines) == 0 {
		lines = append(lines, install.Linef(install.OK, "no network configuration comes before %s in %s", install.ConflistName, needs.ConfDir))
	}
	return lines
}

// describeGoingOn tells under which condition install goes on all the same.
func (n Needs) describeGoingOn(tree install.Tree) string {
	if n.severityBeside(tree) == install.Warning {
		return "enipool is installed here already, so this run goes on"
	}
	return "--force installs beside it"
}

// callsUs tells whether the network configuration calls enipool: then somebody chains it on
// purpose.
func callsUs(text []byte) bool {
	c, err := install.ParseConflist(text)
	return err == nil && slices.Contains(c.Plugins, config.PluginType)
}

// findLivePods names plugins whose pods live on the node. Such pods keep their addresses, which
// enipool does not touch; but the plugin may go on to change the node's ENIs and rules.
func findLivePods(tree install.Tree, needs Needs) []install.Line {
	if needs.Delegated {
		return nil // the plugin that calls us makes the links
	}
	h, err := host.New()
	if err != nil {
		return []install.Line{notTried("look for pods of other plugins", err)}
	}
	defer h.Close()
	pods, err := h.OthersPods()
	if err != nil {
		return []install.Line{notTried("look for pods of other plugins", errors.Unwrap(err))}
	}
	byPlugin, order := map[string][]host.OthersPod{}, []string{}
	for _, p := range pods {
		if byPlugin[p.Plugin] == nil {
			order = append(order, p.Plugin)
		}
		byPlugin[p.Plugin] = append(byPlugin[p.Plugin], p)
	}
	var lines []install.Line
	for _, plugin := range order {
		lines = append(lines, install.Linef(needs.severityBeside(tree), "%s: drain the node first (kubectl drain), or delete its pods one by one after --force: "+
			"enipool leaves their addresses, routes and rules alone until they are gone", describePods(plugin, byPlugin[plugin])))
	}
	return lines
}

func describePods(plugin string, pods []host.OthersPod) string {
	if plugin == "" {
		plugin = "another plugin"
	}
	example := pods[0].Dev
	if len(pods[0].Addrs) > 0 {
		example = fmt.Sprintf("%s with %s", example, pods[0].Addrs[0])
	}
	noun := "pods live"
	if len(pods) == 1 {
		noun = "pod lives"
	}
	return fmt.Sprintf("%d %s on this node by %s (%s)", len(pods), noun, plugin, example)
}
