package firewall

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// isCalicos tells whether Felix, Calico's agent on the node, keeps the chain. What is dropped
// there is dropped by a network policy, or because Felix does not know the pod's link.
func isCalicos(chain string) bool { return strings.Contains(chain, "cali-") }

// isDispatch tells whether the chain is one of Felix's that leads each pod's packets by the
// pod's link to the chain of its policies, and drops those of a link that Felix does not know.
func isDispatch(chain string) bool {
	return isCalicos(chain) && strings.Contains(chain, "-wl-dispatch")
}

// dropsByPolicy tells whether the packet was dropped by a network policy, as it is meant.
func (w *walk) dropsByPolicy() bool { return isCalicos(w.droppedIn) && !isDispatch(w.droppedIn) }

// mayGetRules tells whether a pattern of a link's name is one for single pods: for a pod that
// others do not know yet, there may be another one later. The names of all pods begin alike.
func (f Flow) mayGetRules(link, pattern string) bool {
	return f.NewLink != "" && link == f.NewLink && len(pattern) > len(netconf.VethPrefix) && strings.HasPrefix(pattern, netconf.VethPrefix)
}

// mayGetElement tells whether a set or map holds links of pods, or nothing, and the key names
// a pod that others do not know yet: then it may stand there later.
func (f Flow) mayGetElement(key []byte, elements []nftables.SetElement) bool {
	at := bytes.Index(key, []byte(f.NewLink))
	if f.NewLink == "" || at < 0 {
		return false
	}
	for _, e := range elements {
		if at < len(e.Key) && bytes.HasPrefix(e.Key[at:], []byte(netconf.VethPrefix)) {
			return true
		}
	}
	return len(elements) == 0
}

// mendText says what to do about the chain that drops flows. No rule may accept them before
// Calico's chains are asked: that would switch network policies off.
func (d dropped) mendText(accept string) string {
	switch {
	case d.hook != *nftables.ChainHookForward:
		return "have its owner let pods' packets pass"
	case d.dispatch != "":
		return fmt.Sprintf("Calico's Felix does not know the pods' links (chain %s): see the log of calico-node, and that FELIX_INTERFACEPREFIX names %s; don't accept pods before its chains, that would switch network policies off", d.dispatch, netconf.VethPrefix)
	case d.pastCalico && !d.byRule:
		accept = strings.NewReplacer(" -I ", " -A ", "nft insert ", "nft add ").Replace(accept) // behind Calico's
	case d.pastCalico:
		return "have its owner let pods pass, behind the jump to Calico's chains: before it, network policies would be off"
	}
	return "to let it pass: " + accept
}
