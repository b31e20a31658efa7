package host

import (
	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/netconf"
)

// attachProgram lets the pod have the fast path where there is one. Where there is
// none, and where it fails, the pod's packets go the plain way: the agent sees to
// links that lack it.
func attachProgram(p netconf.Pod, hostLink int) {
	if p.Program == "" {
		return
	}
	program, err := bpf.Open(p.Program)
	if err != nil {
		return
	}
	defer program.Close()
	_ = bpf.AttachIngress(program, hostLink)
}
