package main

import (
	"fmt"
	"net/netip"
	"os"
)

// contender is something that can attach a pod, in whole processes.
type contender struct {
	name     string
	add, del string // command lines, for the report
	// Both return the milliseconds of their processes. call makes them differ.
	attach func(pod space, call int) (float64, error)
	detach func(pod space, call int) (float64, error)
}

// container is a sandbox's id as runtimes make them.
func container(call int) string { return fmt.Sprintf("%064x", call) }

func enipoolConf(cache string) string {
	return fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","type":"enipool","cachePath":%q}`, cache)
}

// ptpConf asks for what enipool does and no more: no masquerading, which ptp
// does by running iptables.
func ptpConf(data string, subnet netip.Prefix) string {
	return fmt.Sprintf(`{"cniVersion":"1.0.0","name":"reference","type":"ptp","mtu":1500,"ipam":{"type":"host-local",`+
		`"dataDir":%q,"ranges":[[{"subnet":"%s"}]],"routes":[{"dst":"0.0.0.0/0"}]}}`, data, subnet)
}

func (p programs) single(name, plugin, conf, confName string) contender {
	call := func(command string) func(space, int) (float64, error) {
		return func(pod space, n int) (float64, error) {
			ms, _, err := p.attach(plugin, command, container(n), "eth0", pod, conf).run()
			return ms, err
		}
	}
	line := func(command string) string {
		return fmt.Sprintf("CNI_COMMAND=%s CNI_CONTAINERID=… CNI_NETNS=… CNI_IFNAME=eth0 CNI_PATH=… %s < %s", command, plugin, confName)
	}
	return contender{name: name, add: line("ADD"), del: line("DEL"), attach: call("ADD"), detach: call("DEL")}
}

func (p programs) enipool(name, cache string) contender {
	return p.single(name, "enipool", enipoolConf(cache), "enipool.json")
}

func (p programs) ptp(name, data string, subnet netip.Prefix) contender {
	return p.single(name, "ptp", ptpConf(data, subnet), "ptp.json")
}

// ptpSBR is ptp and then sbr, which gives each pod a routing table of its own:
// the nearest that the reference plugins come to source routing.
func (p programs) ptpSBR(data string, subnet netip.Prefix) contender {
	return p.chain("ptp+host-local+sbr",
		chained{"ptp", fixed(ptpConf(data, subnet))},
		chained{"sbr", fixed(`{"cniVersion":"1.0.0","name":"reference","type":"sbr"}`)})
}

// floor is no plugin: only the netlink calls.
func (p programs) floor(addr netip.Addr) contender {
	run := func(args ...string) (float64, error) {
		ms, _, err := process{path: p.path("floor"), args: args, env: os.Environ()}.run()
		return ms, err
	}
	dev := func(n int) string { return fmt.Sprintf("flr%011x", n) }
	return contender{
		name: "floor", add: "floor add NETNS eth0 HOSTDEV ADDRESS 1500 ALIAS", del: "floor del HOSTDEV",
		attach: func(pod space, n int) (float64, error) {
			return run("add", pod.Path(), "eth0", dev(n), addr.String(), "1500", "pod "+container(n))
		},
		detach: func(_ space, n int) (float64, error) { return run("del", dev(n)) },
	}
}
