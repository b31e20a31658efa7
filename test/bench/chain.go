package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// chain is a list of plugins that a runtime calls one after the other: each with
// the result of the one before, DEL backwards and with the last result.
type chain struct {
	programs
	plugins []chained
	results sync.Map // by call: the result that a runtime keeps for DEL
}

// chained is a plugin of a chain. A call's configuration may differ from another's.
type chained struct {
	plugin string
	conf   func(call int) string
}

// fixed is a configuration that is the same for all calls.
func fixed(conf string) func(int) string { return func(int) string { return conf } }

func (p programs) chain(name string, plugins ...chained) contender {
	c := &chain{programs: p, plugins: plugins}
	var names []string
	for _, l := range plugins {
		names = append(names, l.plugin)
	}
	line := func(command string) string {
		return fmt.Sprintf("CNI_COMMAND=%s CNI_CONTAINERID=… CNI_NETNS=… CNI_IFNAME=eth0 CNI_PATH=… %s, each with its configuration and prevResult",
			command, strings.Join(names, ", then "))
	}
	add := line("ADD")
	slices.Reverse(names)
	return contender{name: name, add: add, del: line("DEL"), attach: c.attachPod, detach: c.detachPod}
}

func (c *chain) attachPod(pod space, call int) (total float64, err error) {
	var result []byte
	for _, l := range c.plugins {
		ms, out, err := c.attach(l.plugin, "ADD", container(call), "eth0", pod, withResult(l.conf(call), result)).run()
		if err != nil {
			return 0, err
		}
		if !json.Valid(out) {
			return 0, fmt.Errorf("%s printed no JSON: %.200s", l.plugin, out)
		}
		total, result = total+ms, out
	}
	c.results.Store(call, result)
	return total, nil
}

func (c *chain) detachPod(pod space, call int) (total float64, err error) {
	var result []byte
	if kept, ok := c.results.LoadAndDelete(call); ok {
		result = kept.([]byte)
	}
	for _, l := range slices.Backward(c.plugins) {
		ms, _, err := c.attach(l.plugin, "DEL", container(call), "eth0", pod, withResult(l.conf(call), result)).run()
		if err != nil {
			return 0, err
		}
		total += ms
	}
	return total, nil
}

// withResult adds prevResult to a configuration; the first ADD of a chain has none.
func withResult(conf string, result []byte) string {
	if result == nil {
		return conf
	}
	return strings.Replace(conf, "{", fmt.Sprintf(`{"prevResult":%s,`, result), 1)
}

// asks returns what the runtime wants for a call's pod, by capability.
type asks func(call int) map[string]any

// asksNothing is a pod without hostPorts and limits.
func asksNothing(int) map[string]any { return nil }

// asksBoth is a pod with a hostPort, which no other pod of its time has, and with
// limits for both directions.
func asksBoth(call int) map[string]any {
	const rate = 100_000_000
	return map[string]any{
		"portMappings": []map[string]any{portMapping(20_000 + call%10_000)},
		"bandwidth":    map[string]int{"ingressRate": rate, "ingressBurst": rate, "egressRate": rate, "egressBurst": rate},
	}
}

// serverPort is where a pod serves, behind its hostPort too.
const serverPort = 8080

func portMapping(hostPort int) map[string]any {
	return map[string]any{"hostPort": hostPort, "containerPort": serverPort, "protocol": "tcp"}
}

// conflist is a file of the folder conf for the node, called as a runtime calls it:
// a plugin learns of what it has the capability for.
func (b *bench) conflist(name, file string, n node, asked asks) (contender, error) {
	text, err := os.ReadFile(filepath.Join("conf", file))
	if err != nil {
		return contender{}, fmt.Errorf("read conflist: %w", err)
	}
	var list struct {
		Name, CNIVersion string
		Plugins          []map[string]any
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return contender{}, fmt.Errorf("read conflist %s: %w", file, err)
	}
	var plugins []chained
	for _, conf := range list.Plugins {
		plugin, _ := conf["type"].(string)
		can, _ := conf["capabilities"].(map[string]any)
		delete(conf, "capabilities")
		conf["name"], conf["cniVersion"] = list.Name, list.CNIVersion
		if plugin == "enipool" {
			conf["cachePath"], conf["logFile"] = n.cache, b.temp("enipool.log")
		}
		call := func(n int) string { return runtimeConf(conf, can, asked(n)) }
		plugins = append(plugins, chained{plugin, call})
	}
	return b.bin.chain(name, plugins...), nil
}

// runtimeConf is a plugin's configuration with what it is capable of and the pod wants.
// It is called by many at once and changes nothing that they share.
func runtimeConf(conf, capabilities, asked map[string]any) string {
	whole := map[string]any{}
	for key, value := range conf {
		whole[key] = value
	}
	runtime := map[string]any{}
	for key, value := range asked {
		if capabilities[key] == true {
			runtime[key] = value
		}
	}
	if len(runtime) > 0 {
		whole["runtimeConfig"] = runtime
	}
	text, err := json.Marshal(whole)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(text)
}
