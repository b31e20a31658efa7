package pool

import (
	"fmt"
	"io"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// waitingPod is the pod of a pending ADD.
type waitingPod struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Container string `json:"container"`
	Network   string `json:"network"`
	IfName    string `json:"ifname"`
	Seconds   int    `json:"seconds"` // since its ADD began, or failed
	// Failed tells that the ADD has ended; the runtime is expected to try again.
	Failed bool `json:"failed,omitempty"`
}

// readWaiting returns the pods of pending ADDs, the longest waiting first. The agent's status
// says only how many there are.
func readWaiting(cache *nodecache.Cache) ([]waitingPod, error) {
	now := nodecache.SinceBoot()
	pending, err := cache.PendingADDs(now)
	if err != nil {
		return nil, err
	}
	var list []waitingPod
	for _, w := range pending {
		list = append(list, waitingPod{Namespace: w.Owner.Namespace, Pod: w.Owner.Pod, Container: w.Owner.Container, Network: w.Owner.Network,
			IfName: w.Owner.IfName, Seconds: int((now - w.Since).Seconds()), Failed: w.Failed})
	}
	return list, nil
}

// printWaiting prints the pods of pending ADDs, and nothing where there are none.
func printWaiting(out io.Writer, list []waitingPod, bare bool) error {
	if len(list) == 0 {
		return nil
	}
	table := cli.NewTable(out, false)
	fmt.Fprint(cli.Heads(table, bare), "\nNO FREE ADDRESS\tFOR\tPOD\n")
	for _, p := range list {
		state, pod := "waits", p.Container
		if p.Failed {
			state = "failed, is tried again"
		}
		if p.Pod != "" {
			pod = p.Namespace + "/" + p.Pod
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", state, time.Duration(p.Seconds)*time.Second, pod)
	}
	return table.Flush()
}
