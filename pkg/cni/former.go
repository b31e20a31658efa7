package cni

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/iptexec"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// endFormer removes what the portmap and bandwidth plugins made for a pod that was
// started before enipool did their work. Runtimes like containerd end a pod by the
// configuration of today, in which those plugins are not called any more: rules
// would be left that lead to an address which is another pod's by then.
func (p *Plugin) endFormer(r Request, held ipam.Lease) error {
	if r.Conf.Extras.IsZero() || len(held.Addresses) == 0 || held.Addresses[0].Owner.Kind != eni.Veth {
		return nil
	}
	if _, found, err := p.records().Read(r.Owner.Key); found || err != nil {
		return nil // we did it; removeExtras tells the error
	}
	if len(r.Conf.Extras.Ports) > 0 {
		if err := p.runFormer(r, "portmap", `"portMappings":[`+portMappings(r.Conf.Extras.Ports)+"]"); err != nil {
			return err
		}
	}
	if r.Conf.Extras.Limits == (netconf.Limits{}) {
		return nil
	}
	in, out := r.Conf.Extras.Limits.Ingress, r.Conf.Extras.Limits.Egress
	return p.runFormer(r, "bandwidth", fmt.Sprintf(`"bandwidth":{"ingressRate":%d,"ingressBurst":%d,"egressRate":%d,"egressBurst":%d}`, in.Rate, in.Burst, out.Rate, out.Burst))
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
func (p *Plugin) runFormer(r Request, name, runtimeConfig string) error {
	for _, dir := range filepath.SplitList(os.Getenv("CNI_PATH")) {
		path := filepath.Join(dir, name)
		if unix.Access(path, unix.X_OK) != nil {
			continue
		}
		conf := fmt.Sprintf(`{"cniVersion":"%s","name":"%s","type":"%s","runtimeConfig":{%s}}`, r.Conf.CNIVersion, r.Conf.Name, name, runtimeConfig)
		if out, err := iptexec.Run(path, nil, conf); err != nil {
			return fmt.Errorf("end what %s made for the pod: %w: %s", name, err, out)
		}
		p.Log.Info("ended by the plugin that began it", "plugin", name, "key", r.Owner.Key.String())
		return nil
	}
	p.Log.Warn("the plugin that served this pod is gone, what it made may be left", "plugin", name, "key", r.Owner.Key.String())
	return nil
}
