package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// cnitool calls a network configuration of the node as a runtime does that knows the newest version of the protocol.
func (n *node) cnitool(folder string, args ...string) (string, error) {
	tool, err := filepath.Abs("../../.build/cni/cnitool")
	n.c.must(err)
	return n.Try(append([]string{"env", "NETCONFPATH=" + folder, "CNI_PATH=/opt/cni/bin", tool}, args...)...)
}

// newest is a folder with the configuration of Multus in version 1.1.0 of the protocol, in which a runtime may ask for STATUS and GC. In that of the
// file Multus does not hand them on.
const newest = "/run/newest"

func (n *node) writeNewest() {
	n.c.t.Helper()
	n.Run("sh", "-c", `mkdir -p `+newest+` && sed 's,"1.0.0","1.1.0",' /etc/cni/net.d/00-multus.conflist >`+newest+`/00.conflist`)
}

// statusPassesThrough checks that Multus hands STATUS on to its first network: enipool's answer is the answer.
func (n *node) statusPassesThrough() {
	n.c.t.Helper()
	if out, err := n.cnitool(newest, "status", "multus-cni-network", "/run/netns/none"); err != nil {
		n.c.t.Errorf("STATUS by Multus: %v\n%s", err, out)
	}
	n.Run("sh", "-c", `mkdir -p /run/elsewhere && sed 's,/run/enipool/node.cache,/run/enipool/none,' `+newest+`/00.conflist >/run/elsewhere/00.conflist`)
	switch out, err := n.cnitool("/run/elsewhere", "status", "multus-cni-network", "/run/netns/none"); {
	case err == nil:
		n.c.t.Errorf("STATUS by Multus of a pool that is not there: %s", out)
	case !strings.Contains(out+err.Error(), "node cache"):
		n.c.t.Errorf("STATUS by Multus does not say what enipool says: %v\n%s", err, out)
	}
}

// gcPassesThrough checks that Multus hands GC on to its first network, with the attachments that it knows: an attachment that was made without it
// goes, its own stay.
func (n *node) gcPassesThrough() {
	n.c.t.Helper()
	const folder = "/etc/cni/net.d"
	n.Run("ip", "netns", "add", "bypass")
	before := sum(n.used())
	if out, err := n.cnitool(folder, "add", "enipool", "/run/netns/bypass"); err != nil {
		n.c.t.Fatalf("ADD without Multus: %v\n%s", err, out)
	}
	if now := sum(n.used()); now != before+1 {
		n.c.t.Errorf("%d addresses are used, want %d", now, before+1)
	}
	n.gcByMultus()
	if now := sum(n.used()); now != before {
		n.c.t.Errorf("after GC %d addresses are used, want %d", now, before)
	}
	if out, err := n.cnitool(folder, "del", "enipool", "/run/netns/bypass"); err != nil {
		n.c.t.Errorf("DEL without Multus: %v\n%s", err, out)
	}
	n.Run("ip", "netns", "del", "bypass")
}

// gcByMultus calls Multus as a runtime does for GC, with a list of no attachment: it has one of its own. A runtime's library would first end the attachments
// that it knows beyond the list.
func (n *node) gcByMultus() {
	n.c.t.Helper()
	text, err := os.ReadFile(n.Path(newest + "/00.conflist"))
	n.c.must(err)
	var list struct {
		CNIVersion, Name string
		Plugins          []map[string]any
	}
	n.c.must(json.Unmarshal(text, &list))
	call := list.Plugins[0]
	call["cniVersion"], call["name"], call["cni.dev/valid-attachments"] = list.CNIVersion, list.Name, []any{}
	text, err = json.Marshal(call)
	n.c.must(err)
	n.c.must(os.WriteFile(n.Path(newest+"/gc"), text, 0o600))
	n.Run("sh", "-c", "CNI_COMMAND=GC CNI_PATH=/opt/cni/bin /opt/cni/bin/multus <"+newest+"/gc")
}
