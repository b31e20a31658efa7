package pool

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// pickFlags are the flags that pick addresses, as they are typed.
type pickFlags struct{ pod, address, state, eni, port string }

// picked is which addresses are shown. The zero one picks all.
type picked struct {
	pod     string // NAMESPACE/NAME, or NAME in any namespace
	address netip.Addr
	state   string
	eni     string
	port    portFilter
}

// noneError is an answer: no address is as it was asked for, and all that tells could be read.
type noneError string

func (e noneError) Error() string { return string(e) }

// claimedState is how the pool tells a used address that is kept for its pod beyond its end.
const claimedState = "claimed"

// stateNames returns the states in which an address is shown.
func stateNames() (names []string) {
	for s := eni.Free; s <= eni.Reserved; s++ {
		names = append(names, s.String())
	}
	return append(names, claimedState)
}

// addTo adds the flags. What the shell offers for them is read from the node cache.
func (f *pickFlags) addTo(cmd *cobra.Command, cache *nodecache.Cache) {
	flags := cmd.Flags()
	flags.StringVar(&f.pod, "pod", "", "only those of this pod, as NAMESPACE/NAME, or NAME in any namespace")
	flags.StringVar(&f.address, "address", "", "only this address")
	flags.StringVar(&f.state, "state", "", "only those in this state: "+strings.Join(stateNames(), ", "))
	flags.StringVar(&f.eni, "eni", "", "only those of this ENI, by its ID or its link")
	flags.StringVar(&f.port, "port", "", "only those of pods that have this host port, as 8080 or 8080/tcp")
	cli.Offer(cmd, "state", stateNames()...)
	offer := func(flag string, values func(node.Report) []string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			var report node.Report
			// Without a cache, or without the right to read it, there is nothing to offer.
			_ = cache.View(cmd.Context(), func(state *ipam.State) error {
				report = node.NewReport(state, nodecache.SinceBoot())
				return nil
			})
			return values(report), cobra.ShellCompDirectiveNoFileComp
		})
	}
	offer("pod", podNames)
	offer("address", func(r node.Report) (list []string) {
		for _, a := range r.Addresses {
			list = append(list, a.Address.String())
		}
		return list
	})
	offer("eni", func(r node.Report) (list []string) {
		for _, e := range r.ENIs {
			list = append(list, e.ID)
		}
		return list
	})
	offer("port", func(node.Report) []string { return nil })
}

// podNames returns the pods of a report, each once.
func podNames(r node.Report) (list []string) {
	for _, a := range r.Addresses {
		if a.Pod != "" {
			list = append(list, a.Namespace+"/"+a.Pod)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// parse checks the flags.
func (f pickFlags) parse() (p picked, err error) {
	p = picked{pod: f.pod, state: f.state, eni: f.eni}
	if f.address != "" {
		if p.address, err = netip.ParseAddr(f.address); err != nil {
			return p, fmt.Errorf("--address %s: must be an address like 10.0.0.11", f.address)
		}
	}
	if names := stateNames(); f.state != "" && !slices.Contains(names, f.state) {
		return p, fmt.Errorf("--state %s: must be one of %s", f.state, strings.Join(names, ", "))
	}
	p.port, err = parsePortFilter(f.port)
	return p, err
}

// pickFrom leaves in the view the addresses that are picked, and who waits for one where only its pod is asked for. Where there is nothing of either it
// returns a noneError.
func (p picked) pickFrom(view *shown) error {
	link := map[string]string{}
	for _, e := range view.ENIs {
		link[e.ID] = e.Device
	}
	view.Addresses = slices.DeleteFunc(view.Addresses, func(a node.ReportAddress) bool {
		return !isPod(p.pod, a.Namespace, a.Pod) || p.address.IsValid() && a.Address != p.address ||
			p.state != "" && a.State != p.state || p.eni != "" && a.ENI != p.eni && link[a.ENI] != p.eni
	})
	view.Waiting = slices.DeleteFunc(view.Waiting, func(w waitingPod) bool {
		return p != picked{pod: p.pod} || !isPod(p.pod, w.Namespace, w.Pod)
	})
	if p.port != (portFilter{}) {
		return p.port.pick(&view.Report)
	}
	if len(view.Addresses)+len(view.Waiting) == 0 {
		return noneError("no address of this node is as asked for; `enipoolctl pool show` shows all")
	}
	return nil
}

// isPod tells whether a pod is the one that is asked for: "" is each.
func isPod(asked, namespace, name string) bool {
	return asked == "" || asked == name || asked == namespace+"/"+name
}
