package check

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/install"
)

// network is a network configuration, of one plugin or a list of them, as far as it tells which plugins are called. Multus calls its cluster network by
// name or by path, or else the networks that it has copies of.
type network struct {
	Type           string
	IPAM           struct{ Type string }
	Plugins        []network
	ClusterNetwork string
	Delegates      []network
}

func (n network) callsUs() bool {
	return n.Type == config.PluginType || n.IPAM.Type == config.PluginType || slices.ContainsFunc(n.Plugins, network.callsUs)
}

// isMultus knows both programs that Multus comes as: one that does all itself, and one that asks a daemon.
func (n network) isMultus() bool { return n.Type == "multus" || n.Type == "multus-shim" }

// findMultus returns the part of a network configuration that is Multus's, if any is.
func findMultus(text []byte) (found network, ok bool) {
	var whole network
	if json.Unmarshal(text, &whole) != nil {
		return network{}, false
	}
	for _, n := range append([]network{whole}, whole.Plugins...) {
		if n.isMultus() {
			return n, true
		}
	}
	return network{}, false
}

// describeMultus tells what a configuration of Multus that comes first makes of enipool. The first network is the
// cluster's, which every pod has.
func (n Needs) describeMultus(tree install.Tree, file string, multus network) install.Line {
	ours := filepath.Join(n.ConfDir, install.ConflistName)
	first := multus.ClusterNetwork == n.Network || multus.ClusterNetwork == ours
	if multus.ClusterNetwork == "" {
		first = len(multus.Delegates) > 0 && multus.Delegates[0].callsUs()
	}
	if first {
		return install.Linef(install.OK, "in %s %s comes first, and enipool's is the cluster network of that Multus", n.ConfDir, file)
	}
	return install.Linef(n.severityBeside(tree), "in %s %s comes first, and another is the cluster network of that Multus: only pods that ask for a second network of enipool "+
		"get addresses of it. If that is not wanted, make %s its clusterNetwork; %s", n.ConfDir, file, ours, n.describeGoingOn(tree))
}
