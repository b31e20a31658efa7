package cni

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/iptexec"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
	"golang.org/x/sys/unix"
)

// endFormer removes what the portmap and bandwidth plugins made for a pod that was
// started before enipool did their work. Runtimes like containerd end a pod by the
// configuration of today, in which those plugins are not called any more: rules
// would be left that lead to an address which is another pod's by then.
func (p *Plugin) endFormer(ctx context.Context, kernel *host.Host, request Request, settings ipam.Settings, held ipam.Lease) error {
	if len(held.Addresses) == 0 || held.Addresses[0].Owner.Kind != eni.Veth {
		return nil
	}
	rec, found, err := p.records().Read(request.Owner.Key)
	switch {
	case found && err == nil:
		return nil // we did it
	case request.Conf.Extras.IsZero() && !podrecord.Unreadable(err):
		return nil // nobody did, or closePorts tells the error
	}
	// Without a record the kernel tells which plugin did it: rules of enipool's are rebuilt into one.
	if rec, err = p.restoreRecord(ctx, kernel, settings, held.Addresses); err != nil {
		p.Log.Warn("record can't be made again from the kernel", "key", request.Owner.Key.String(), "error", err)
		return nil // it is not known who opened the ports: the agent closes those of enipool
	}
	if len(request.Conf.Extras.Ports) > 0 && len(rec.Ports) == 0 {
		if err := p.runFormer(request, "portmap", `"portMappings":[`+portMappings(request.Conf.Extras.Ports)+"]"); err != nil {
			return err
		}
	}
	none := netconf.Limit{}
	in, out := request.Conf.Extras.Limits.Ingress, request.Conf.Extras.Limits.Egress
	// A limit on ingress is a queue of the pod's link, and goes with that.
	if out == none || rec.Limits.Egress != none {
		return nil
	}
	return p.runFormer(request, "bandwidth", fmt.Sprintf(`"bandwidth":{"ingressRate":%d,"ingressBurst":%d,"egressRate":%d,"egressBurst":%d}`, in.Rate, in.Burst, out.Rate, out.Burst))
}

// findUnrecorded rebuilds the record of a pod that lost it. That the pod asked for ports its
// link tells. Where the link is gone the packet filter is asked for ports that lead to the
// addresses, so that they don't lead to the next pod with one of them.
func (p *Plugin) findUnrecorded(ctx context.Context, kernel *host.Host, settings ipam.Settings, key eni.Key, addrs []eni.Address) (rec podrecord.Record, found bool) {
	if len(addrs) == 0 || addrs[0].Owner.Kind != eni.Veth {
		return rec, false
	}
	linked, asked, err := kernel.PortTag(key)
	if err == nil && !linked {
		var have []netconf.PodPorts
		have, err = hostport.Found(settings.Firewall, hostport.Pods(addrs, settings.Firewall))
		asked = slices.ContainsFunc(have, func(p netconf.PodPorts) bool {
			return slices.ContainsFunc(addrs, func(a eni.Address) bool { return a.Addr == p.Pod })
		})
	}
	if err == nil && !asked {
		return rec, false
	}
	if err == nil {
		rec, err = p.restoreRecord(ctx, kernel, settings, addrs)
	}
	if err != nil {
		p.Log.Warn("host ports of a pod without a record are left to the agent", "key", key.String(), "error", err)
		return rec, false
	}
	return rec, !rec.Extras.IsZero()
}

// restoreRecord rebuilds the record of a pod from the ports and limits that the kernel holds
// for it, so that DEL goes on as usual. It returns an empty one where there are none. It
// writes the record too, for the next DEL if this one is killed; that the disk is full is no
// error, because DEL is about to remove the record anyway.
func (p *Plugin) restoreRecord(ctx context.Context, kernel *host.Host, settings ipam.Settings, addrs []eni.Address) (rec podrecord.Record, err error) {
	err = p.withPorts(ctx, settings.Firewall, func(ports hostport.Node) error {
		pods := hostport.Pods(addrs, settings.Firewall)
		if len(pods) == 0 {
			return nil // another plugin's interface has neither
		}
		have, err := hostport.Found(settings.Firewall, pods)
		if err != nil {
			return err
		}
		limits, err := kernel.FoundLimits([]eni.Key{pods[0].Key})
		if err != nil {
			return err
		}
		all, err := ports.Records.All()
		if err != nil && !podrecord.Unreadable(err) {
			return err
		}
		lost := hostport.Lost(pods, all, have, limits)
		if len(lost) == 0 {
			return nil
		}
		rec = lost[0]
		p.Log.Warn("record was lost; rebuilt from the kernel", "key", rec.Key.String())
		if err := ports.Records.Write(rec); err != nil {
			p.Log.Warn("the rebuilt record can't be written", "key", rec.Key.String(), "error", err)
		}
		return nil
	})
	return rec, err
}

func portMappings(ports []netconf.HostPort) string {
	var list []string
	for _, port := range ports {
		on := ""
		if port.Host.IsValid() {
			on = port.Host.String()
		}
		list = append(list, fmt.Sprintf(`{"hostPort":%d,"containerPort":%d,"protocol":"%s","hostIP":"%s"}`, port.Port, port.PodPort, port.Transport, on))
	}
	return strings.Join(list, ",")
}

// runFormer calls the plugin with the environment of this call. A plugin that is
// not on the node any more can't be called.
func (p *Plugin) runFormer(request Request, name, runtimeConfig string) error {
	for _, dir := range filepath.SplitList(os.Getenv("CNI_PATH")) {
		path := filepath.Join(dir, name)
		if unix.Access(path, unix.X_OK) != nil {
			continue
		}
		conf := fmt.Sprintf(`{"cniVersion":"%s","name":"%s","type":"%s","runtimeConfig":{%s}}`, request.Conf.CNIVersion, request.Conf.Name, name, runtimeConfig)
		if out, err := iptexec.Run(path, nil, conf); err != nil {
			return fmt.Errorf("end what %s made for the pod: %w: %s", name, err, out)
		}
		p.Log.Info("ended by the plugin that began it", "plugin", name, "key", request.Owner.Key.String())
		return nil
	}
	p.Log.Warn("the plugin that served this pod is gone, what it made may be left", "plugin", name, "key", request.Owner.Key.String())
	return nil
}
