package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"
)

// defaults is what an empty configuration means.
func defaults() Plugin {
	return Plugin{CNIVersion: "0.1.0", CachePath: "/run/enipool/node.cache", WaitForAddress: 5 * time.Second, LogLevel: "info"}
}

func TestWhatAConfigurationMeans(t *testing.T) {
	for _, tt := range []struct {
		name, stdin string
		want        func(*Plugin)
	}{
		{"nothing but defaults", `{}`, func(*Plugin) {}},
		{"name and version", `{"cniVersion": "1.1.0", "name": "pods", "type": "enipool"}`, func(p *Plugin) {
			p.CNIVersion, p.Name = "1.1.0", "pods"
		}},
		{"every option", `{"type": "enipool", "cachePath": "/tmp/c", "waitForAddress": "0s", "mtu": 9001, "logFile": "/var/log/e", "logLevel": "debug",
			"statusFailsWhenExhausted": true}`, func(p *Plugin) {
			p.CachePath, p.WaitForAddress, p.MTU, p.LogFile, p.LogLevel = "/tmp/c", 0, 9001, "/var/log/e", "debug"
			p.StatusFailsWhenExhausted = true
		}},
		{"the ends of what is allowed", `{"waitForAddress": "1m40s", "mtu": 576}`, func(p *Plugin) {
			p.WaitForAddress, p.MTU = 100*time.Second, 576
		}},
		{"the other ends", `{"waitForAddress": "1ms", "mtu": 65535, "logFile": ""}`, func(p *Plugin) {
			p.WaitForAddress, p.MTU = time.Millisecond, 65535
		}},
		{"options that say nothing", `{"cachePath": null, "waitForAddress": null, "mtu": 0, "logFile": null, "logLevel": null,
			"statusFailsWhenExhausted": null, "ipam": null, "runtimeConfig": null, "master": null}`, func(*Plugin) {}},
		{"log levels in any case", `{"logLevel": "WARN"}`, func(p *Plugin) { p.LogLevel = "warn" }},
		{"keys in any case", `{"CNIVERSION": "1.0.0", "Name": "pods", "CachePath": "/c", "MTU": 1400, "waitforaddress": "1s"}`, func(p *Plugin) {
			p.CNIVersion, p.Name, p.CachePath, p.MTU, p.WaitForAddress = "1.0.0", "pods", "/c", 1400, time.Second
		}},
		{"keys nobody knows", `{"colour": "green", "capabilities": {"ips": true}, "disableCheck": 7, "dns": {}, "args": [],
			"ipMasq": true, "runtimeConfig": {"portMappings": [], "bandwidth": {}, "cgroupPath": "x"}}`, func(*Plugin) {}},
		{"an empty IPAM section", `{"type": "enipool", "ipam": {}}`, func(*Plugin) {}},
		{"our own IPAM section that says nothing", `{"type": "enipool", "cachePath": "/yes", "ipam": {"type": "enipool"}}`, func(p *Plugin) {
			p.CachePath = "/yes"
		}},
		{"name servers", `{"type": "enipool", "dns": {"nameservers": ["10.0.0.2"], "domain": "x", "search": ["y"], "options": ["z"]}}`, func(p *Plugin) {
			p.DNS = types.DNS{Nameservers: []string{"10.0.0.2"}, Domain: "x", Search: []string{"y"}, Options: []string{"z"}}
		}},
		{"delegate: name servers are the caller's", `{"type": "ptp", "dns": 7, "ipam": {"type": "enipool"}}`, func(p *Plugin) { p.Delegated = true }},
		{"delegate: only ipam{} is read", `{"cniVersion": "1.0.0", "name": "pods", "type": "macvlan", "master": "eth1", "mtu": 1400, "cachePath": "not/ours",
			"logLevel": 7, "ipam": {"type": "enipool", "cachePath": "/c", "waitForAddress": "1s", "mtu": 1300, "logLevel": "error"}}`, func(p *Plugin) {
			p.CNIVersion, p.Name, p.Delegated, p.Master = "1.0.0", "pods", true, "eth1"
			p.CachePath, p.WaitForAddress, p.MTU, p.LogLevel = "/c", time.Second, 1300, "error"
		}},
		{"delegate: a master that is none", `{"type": "bridge", "master": {"name": "eth1"}, "ipam": {"type": "enipool"}}`, func(p *Plugin) {
			p.Delegated = true
		}},
		{"a previous result", `{"prevResult": {"ips": [ ]}}`, func(p *Plugin) { p.PrevResult = json.RawMessage(`{"ips": [ ]}`) }},
		{"a previous result that is none", `{"prevResult": null}`, func(*Plugin) {}},
		{"no list of attachments", `{}`, func(*Plugin) {}},
		{"a null list: nothing is alive", `{"cni.dev/valid-attachments": null}`, func(p *Plugin) { p.HasValid = true }},
		{"an empty list: nothing is alive", `{"cni.dev/valid-attachments": []}`, func(p *Plugin) { p.HasValid, p.Valid = true, nil }},
		{"a list", `{"cni.dev/valid-attachments": [{"containerID": "a", "ifname": "eth0"}, {"containerID": "b", "ifname": "eth1"}]}`, func(p *Plugin) {
			p.HasValid, p.Valid = true, []types.GCAttachment{{ContainerID: "a", IfName: "eth0"}, {ContainerID: "b", IfName: "eth1"}}
		}},
		{"a list under the newer key", `{"cni.dev/attachments": [{"containerID": "a", "ifname": "eth0"}]}`, func(p *Plugin) {
			p.HasValid, p.Valid = true, []types.GCAttachment{{ContainerID: "a", IfName: "eth0"}}
		}},
		{"a null list under the newer key", `{"cni.dev/attachments": null}`, func(p *Plugin) { p.HasValid = true }},
		{"capabilities that ask for nothing", `{"runtimeConfig": {"ips": [], "mac": ""}}`, func(*Plugin) {}},
		{"null capabilities", `{"runtimeConfig": {"ips": null, "mac": null}}`, func(*Plugin) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParsePlugin([]byte(tt.stdin))
			if err != nil {
				t.Fatal(err)
			}
			want := defaults()
			tt.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBothListsOfAttachmentsCount(t *testing.T) {
	const list = `[{"containerID": "a", "ifname": "eth0"}]`
	p, err := ParsePlugin([]byte(`{"cni.dev/valid-attachments": ` + list + `, "cni.dev/attachments": ` + list + `}`))
	if err != nil {
		t.Fatal(err)
	}
	if !p.HasValid || len(p.Valid) == 0 {
		t.Errorf("got %+v", p)
	}
	for _, v := range p.Valid {
		if v != (types.GCAttachment{ContainerID: "a", IfName: "eth0"}) {
			t.Errorf("%+v is valid", v)
		}
	}
}

func TestAWrongValueIsNamedAndReplacedByItsDefault(t *testing.T) {
	const wait = `a duration like "5s", from "0s" to "1m40s"`
	const level = "debug, info, warn or error"
	for _, tt := range []struct{ key, value, want string }{
		{"cachePath", `7`, "an absolute path"},
		{"cachePath", `""`, "an absolute path"},
		{"cachePath", `"run/node.cache"`, "an absolute path"},
		{"cachePath", `["/run"]`, "an absolute path"},
		{"waitForAddress", `5`, wait},
		{"waitForAddress", `""`, wait},
		{"waitForAddress", `"5"`, wait},
		{"waitForAddress", `"-1s"`, wait},
		{"waitForAddress", `"101s"`, wait},
		{"waitForAddress", `"soon"`, wait},
		{"waitForAddress", `true`, wait},
		{"mtu", `"1500"`, "0 for the ENI's, or 576 to 65535"},
		{"mtu", `1500.5`, "0 for the ENI's, or 576 to 65535"},
		{"mtu", `-1`, "0 for the ENI's, or 576 to 65535"},
		{"mtu", `575`, "0 for the ENI's, or 576 to 65535"},
		{"mtu", `65536`, "0 for the ENI's, or 576 to 65535"},
		{"mtu", `99999999999999999999`, "0 for the ENI's, or 576 to 65535"},
		{"logFile", `"log"`, "an absolute path"},
		{"logFile", `{}`, "an absolute path"},
		{"logLevel", `"loud"`, level},
		{"logLevel", `""`, level},
		{"logLevel", `3`, level},
		{"statusFailsWhenExhausted", `"true"`, "true or false"},
		{"statusFailsWhenExhausted", `1`, "true or false"},
	} {
		for _, role := range []struct{ name, prefix, form string }{
			{"plugin", "", `{"type": "enipool", %q: %s}`},
			{"delegate", "ipam.", `{"type": "ptp", "ipam": {"type": "enipool", %q: %s}}`},
		} {
			t.Run(fmt.Sprintf("%s %s %s", role.name, tt.key, tt.value), func(t *testing.T) {
				got, err := ParsePlugin(fmt.Appendf(nil, role.form, tt.key, tt.value))
				if diff := cmp.Diff(fmt.Sprintf("%s%s: %s: must be %s", role.prefix, tt.key, tt.value, tt.want), fmt.Sprint(err)); diff != "" {
					t.Error(diff)
				}
				var bad *KeyError
				if !errors.As(err, &bad) || bad.Key != role.prefix+tt.key || bad.Value != tt.value || bad.Unsupported {
					t.Errorf("got %#v", err)
				}
				want := defaults()
				want.Delegated = role.name == "delegate"
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("what is left is not the default: %s", diff)
				}
			})
		}
	}
}

func TestAddressesOfAnotherPluginAndBrokenNameServersAreRefused(t *testing.T) {
	const ipam, dns = `absent: enipool brings its own addresses, and its options stand beside "type"`, "an object of nameservers, domain, search and options"
	for _, tt := range []struct{ key, value, want string }{
		{"ipam", `{"type": "host-local", "subnet": "10.0.0.0/24"}`, ipam},
		{"ipam", `{"type": "enipool", "cachePath": "/no"}`, ipam},
		{"ipam", `{"subnet": "10.0.0.0/24"}`, ipam},
		{"ipam", `{"type": 7}`, ipam},
		{"ipam", `"none"`, ipam},
		{"dns", `["10.0.0.2"]`, dns},
		{"dns", `{"nameservers": "10.0.0.2"}`, dns},
	} {
		got, err := ParsePlugin(fmt.Appendf(nil, `{"type": "enipool", %q: %s}`, tt.key, tt.value))
		if diff := cmp.Diff(fmt.Sprintf("%s: %s: must be %s", tt.key, tt.value, tt.want), fmt.Sprint(err)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(defaults(), got); diff != "" {
			t.Errorf("what is left is not the default: %s", diff)
		}
	}
}

func TestWhatTheRuntimeAsksForAndWeDoNotDoIsRefused(t *testing.T) {
	for key, value := range map[string]string{"ips": `["10.0.0.5/24"]`, "mac": `"02:00:00:00:00:01"`} {
		_, err := ParsePlugin(fmt.Appendf(nil, `{"runtimeConfig": {%q: %s}}`, key, value))
		want := "runtimeConfig." + key + ": " + value + ": must be absent: the pool chooses addresses; remove the capability from the network configuration"
		if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
			t.Error(diff)
		}
		var bad *KeyError
		if !errors.As(err, &bad) || !bad.Unsupported {
			t.Errorf("got %#v", err)
		}
	}
}

func TestAllErrorsAreToldAtOnceAndTheRestIsUsable(t *testing.T) {
	got, err := ParsePlugin([]byte(`{"cniVersion": "1.0.0", "name": "pods", "cachePath": "/c", "mtu": 1, "logLevel": "loud", "waitForAddress": 5,
		"cni.dev/valid-attachments": [], "runtimeConfig": {"ips": ["10.0.0.5"]}, "prevResult": {}}`))
	var told []string
	for line := range strings.Lines(fmt.Sprint(err)) {
		told = append(told, line[:strings.IndexByte(line, ':')])
	}
	if diff := cmp.Diff([]string{"waitForAddress", "mtu", "logLevel", "runtimeConfig.ips"}, told); diff != "" {
		t.Error(diff)
	}
	want := defaults()
	want.CNIVersion, want.Name, want.CachePath, want.HasValid, want.PrevResult = "1.0.0", "pods", "/c", true, json.RawMessage("{}")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A list that can't be read must not look like an empty one: then a GC that goes
// on would take everything.
func TestAListOfAttachmentsThatCannotBeReadIsNoList(t *testing.T) {
	for _, key := range []string{"cni.dev/valid-attachments", "cni.dev/attachments"} {
		for _, value := range []string{`{}`, `"all"`, `[1]`, `[{"containerID": 7}]`} {
			got, err := ParsePlugin(fmt.Appendf(nil, `{%q: %s}`, key, value))
			if diff := cmp.Diff(fmt.Sprintf("%s: %s: must be a list of {containerID, ifname}", key, value), fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
			if got.HasValid || got.Valid != nil {
				t.Errorf("%s: %s: it says there is a list: %v", key, value, got.Valid)
			}
		}
	}
}

func TestWhatIsNoConfigurationAtAllIsNoKeyError(t *testing.T) {
	for _, stdin := range []string{``, `{`, `[]`, `"enipool"`, `{"name": 5}`, `{"cniVersion": 1.0}`, "\x00"} {
		_, err := ParsePlugin([]byte(stdin))
		var bad *KeyError
		if err == nil || errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "read network configuration: ") {
			t.Errorf("%q: %v", stdin, err)
		}
	}
}

// FuzzParsePlugin: whatever comes, what is returned beside nil or KeyErrors
// needs no further checks.
func FuzzParsePlugin(f *testing.F) {
	f.Add(`{"cniVersion": "1.1.0", "name": "pods", "type": "enipool", "cachePath": "/c", "waitForAddress": "5s", "mtu": 1500, "logLevel": "info"}`)
	f.Add(`{"type": "ptp", "ipam": {"type": "enipool", "mtu": "x"}, "cni.dev/valid-attachments": [{"containerID": "a", "ifname": "b"}]}`)
	f.Add(`{"runtimeConfig": {"ips": 1, "mac": {}}, "prevResult": null, "cni.dev/attachments": 7}`)
	f.Fuzz(func(t *testing.T, stdin string) {
		p, err := ParsePlugin([]byte(stdin))
		if err != nil && strings.HasPrefix(err.Error(), "read network configuration: ") {
			if diff := cmp.Diff(Plugin{}, p); diff != "" {
				t.Error(diff)
			}
			return
		}
		if p.CNIVersion == "" || p.WaitForAddress < 0 || p.WaitForAddress > maxWait || p.MTU != 0 && (p.MTU < 576 || p.MTU > 65535) ||
			!strings.HasPrefix(p.CachePath, "/") || p.LogFile != "" && !strings.HasPrefix(p.LogFile, "/") ||
			!strings.Contains(" debug info warn error ", " "+p.LogLevel+" ") || p.Valid != nil && !p.HasValid {
			t.Errorf("%+v with %v", p, err)
		}
	})
}
