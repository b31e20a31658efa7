package configfile

import (
	"log/slog"

	"github.com/enipool/enipool/pkg/kube"
)

// silencer has the cluster told nothing any more when the configuration says so. The agent goes on asking
// for its pods until it is started again; what nobody keeps up must not keep pods off the node.
type silencer struct {
	node     string
	withhold func(bool)
	silent   bool
}

// follow takes over what a new configuration says.
func (s *silencer) follow(silent bool, log *slog.Logger) {
	if s == nil || s.silent == silent {
		return
	}
	s.silent = silent
	s.withhold(silent)
	if silent {
		log.Info("kubernetes.enabled is false: condition and taint are taken off the Node; its resource stays, without which pods that ask for addresses fit nowhere",
			"node", s.node, "todo", "when no pods ask for it: "+kube.ResourceByHand(s.node))
	}
}
