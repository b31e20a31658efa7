// Package cni holds the order in which an ADD, DEL, CHECK, GC or STATUS does
// things. An ADD writes the node state first, then the kernel, then the answer. A DEL
// cleans the kernel first, then the node state. So a crash anywhere leaves an address
// that nobody uses, never one that two pods use, and DEL, GC or the agent find
// it in the node state.
package cni

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// Plugin serves the calls of a runtime on the node whose network namespace it
// runs in.
type Plugin struct {
	Cache nodecache.Cache
	Now   func() time.Duration // since boot
	Log   Log
}

// Log is told what the flows do: a message, then names and values in turn. A *slog.Logger
// is one; the plugin has a smaller one.
type Log interface {
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
}

// Request is one call of a runtime, checked.
type Request struct {
	Conf  config.Plugin
	Owner eni.Owner // without the namespace's inode
	Prev  *current.Result
}

// NewRequest makes a request from the runtime's words. confErr is what
// config.ParsePlugin said; it is passed here so that strict calls fail for it and
// lenient ones (DEL, GC) don't.
func NewRequest(conf config.Plugin, confErr error, container, netns, ifName, cniArgs string, lenient bool) (Request, error) {
	request := Request{Conf: conf, Owner: eni.Owner{
		Key:   eni.Key{Network: conf.Name, Container: container, IfName: ifName},
		Netns: netns,
	}}
	argsErr := readArgs(cniArgs, &request.Owner)
	prev, prevErr := readPrevResult(conf)
	request.Prev = prev
	request.Owner.Kind = request.kind()
	if lenient {
		return request, nil
	}
	return request, cmp.Or(confErr, argsErr, prevErr)
}

// kind is the role we play for this request.
func (r Request) kind() eni.Kind {
	switch {
	case r.Conf.Delegated:
		return eni.Delegated
	case r.Prev != nil && r.podInterface(r.Prev) >= 0:
		return eni.Chained
	}
	return eni.Veth
}

// podInterface returns the position in res of the interface that the request is
// for, or -1.
func (r Request) podInterface(res *current.Result) int {
	return slices.IndexFunc(res.Interfaces, func(i *current.Interface) bool {
		return i != nil && i.Name == r.Owner.IfName && i.Sandbox != ""
	})
}

// readArgs reads the pod's namespace, name and UID from CNI_ARGS. Keys that it does
// not know are for other plugins.
func readArgs(args string, owner *eni.Owner) error {
	for pair := range strings.SplitSeq(args, ";") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return &argsError{fmt.Sprintf("pair %q has no =", pair)}
		}
		switch key {
		case "K8S_POD_NAMESPACE":
			owner.Namespace = value
		case "K8S_POD_NAME":
			owner.Pod = value
		case "K8S_POD_UID":
			owner.UID = value
		case "IP", "MAC":
			if value != "" {
				return &argsError{fmt.Sprintf("%s=%s asks for a fixed address: the pool chooses addresses", key, value)}
			}
		}
	}
	return nil
}

// readPrevResult reads the result of the plugins before us in the chain. It must
// be of the configuration's version. Where it names none it gets that one, as libcni does.
func readPrevResult(conf config.Plugin) (*current.Result, error) {
	if conf.PrevResult == nil {
		return nil, nil
	}
	bad := func(err error) error {
		return &config.KeyError{Key: "prevResult", Value: string(conf.PrevResult), Want: "a result of version " + conf.CNIVersion + ": " + err.Error()}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(conf.PrevResult, &fields); err != nil {
		return nil, bad(err)
	}
	if name := nullIn(conf.PrevResult); name != "" {
		return nil, bad(fmt.Errorf("%s has an entry that is null", name))
	}
	text := []byte(conf.PrevResult)
	if v := string(fields["cniVersion"]); v == "" || v == "null" || v == `""` {
		fields["cniVersion"], _ = json.Marshal(conf.CNIVersion)
		text, _ = json.Marshal(fields)
	}
	res, err := version.NewResult(conf.CNIVersion, text)
	if err != nil {
		return nil, bad(err)
	}
	prev, err := current.NewResultFromResult(res)
	if err != nil {
		return nil, bad(err)
	}
	return prev, nil
}

// nullIn returns the name of a list of the result that has a null in it, "" if none has.
// The library makes a nil pointer of it, at which whoever uses the result panics.
func nullIn(result []byte) string {
	var lists struct{ Interfaces, IPs, Routes []*json.RawMessage }
	_ = json.Unmarshal(result, &lists) // what is no list at all version.NewResult refuses
	switch {
	case slices.Contains(lists.Interfaces, nil):
		return "interfaces"
	case slices.Contains(lists.IPs, nil):
		return "ips"
	case slices.Contains(lists.Routes, nil):
		return "routes"
	}
	return ""
}

// insideLink returns what the link in the pod should carry where another plugin makes it:
// each address with its subnet's mask, and a default route by the subnet's router. An address
// outside the ENI's own subnet (from a range for pods alone) has the full mask, which does not
// cover the router: so it has a route to the router too.
func insideLink(dev string, nic eni.Interface, addrs []eni.Address) (in []netconf.Addr, routes []netconf.Route) {
	for _, a := range addrs {
		n := nic.Net(a.Family())
		mask := n.Primary.Bits()
		if !n.Primary.Contains(a.Addr) {
			mask = a.Addr.BitLen()
			routes = append(routes, netconf.Route{Dst: netip.PrefixFrom(n.Gateway, mask), Dev: dev, Table: netconf.MainTable, IfNone: true})
		}
		in = append(in, netconf.Addr{Prefix: netip.PrefixFrom(a.Addr, mask), Dev: dev})
		routes = append(routes, netconf.Route{Dst: netconf.Anywhere(a.Addr.Is6()), Gateway: n.Gateway, Dev: dev, Table: netconf.MainTable, IfNone: true})
	}
	return in, routes
}

// sourceRules returns the node's rules for the addresses.
func sourceRules(settings ipam.Settings, addrs []eni.Address) []netconf.Rule {
	var rules []netconf.Rule
	for _, a := range addrs {
		rules = append(rules, netconf.SourceRules(settings, a)...)
	}
	return rules
}
