// Package config turns what people and runtimes write into values that need no
// further checks. Each error names the key, the value and what is allowed.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/netconf"
)

// PluginType is what a network configuration calls the plugin, in "type" or in
// "ipam.type".
const PluginType = "enipool"

// Defaults of the plugin's keys.
const (
	DefaultCachePath      = "/run/enipool/node.cache"
	DefaultWaitForAddress = 5 * time.Second
)

// maxWait is below the two minutes after which the kubelet gives up a sandbox.
const maxWait = 100 * time.Second

// Plugin is the checked configuration of one call of the plugin.
type Plugin struct {
	CNIVersion string
	Name       string
	Delegated  bool   // enipool is called as another plugin's IPAM
	Master     string // the other plugin's "master" link, "" if it has none

	CachePath                string
	WaitForAddress           time.Duration // 0: fail at once
	MTU                      int           // bytes; 0: the ENI's
	LogFile                  string        // "" for none
	LogLevel                 string        // debug, info, warn, error
	StatusFailsWhenExhausted bool

	Topology     string // of the pod, as its annotation says where the runtime passes those; "" for none
	OfNoTopology bool   // the runtime has passed the pod's annotations, and that is not among them

	DNS    types.DNS      // for the result
	Extras netconf.Extras // host ports and limits that the runtime asks for

	PrevResult json.RawMessage      // nil if there is none
	Valid      []types.GCAttachment // for GC
	HasValid   bool                 // the runtime sent a list, if only an empty one
}

// KeyError says which key of a configuration is wrong, and how.
type KeyError struct {
	Key   string
	Value string // as written
	Want  string // what it must be, to stand behind "must be"
	// Unsupported marks a key that is right but asks for what enipool does not do.
	Unsupported bool

	Unknown bool   // there is no such key
	Meant   string // the one that most likely is, "" if none is near
	Line    int    // of the file, 0 where there is none
}

// Error names the key, and its value and what is allowed, or that there is no such key.
func (e *KeyError) Error() string {
	text := fmt.Sprintf("%s: %s: must be %s", e.Key, e.Value, e.Want)
	if e.Unknown {
		text = e.Key + ": unknown key"
	}
	if e.Meant != "" {
		text += "; did you mean " + e.Meant + "?"
	}
	if e.Line > 0 {
		text += fmt.Sprintf(" (line %d)", e.Line)
	}
	return text
}

// fields are the members of a JSON object, not decoded yet: so a member of a wrong type can be
// named, and a DEL can do without it. Such a map is decoded in half the time of a struct, which
// counts because the plugin does it at each start.
type fields map[string]json.RawMessage

// get returns the member with the key, nil if there is none or it is null. Case
// does not matter: some runtimes capitalise keys.
func (f fields) get(key string) json.RawMessage {
	value, ok := f[key]
	if !ok {
		for k := range f {
			if strings.EqualFold(k, key) {
				value = f[k]
			}
		}
	}
	if string(value) == "null" {
		return nil
	}
	return value
}

// text returns the member with the key as a string, "" if there is none.
func (f fields) text(key string) (s string, err error) {
	if value := f.get(key); value != nil {
		if err = json.Unmarshal(value, &s); err != nil {
			err = fmt.Errorf("read network configuration: %s: %w", key, err)
		}
	}
	return s, err
}

// ParsePlugin reads what a runtime sends on standard input. Unknown keys are tolerated unless
// they are nearly known ones. With an error that is made of *KeyError the Plugin is usable all
// the same, with defaults for the keys in error: a DEL must not fail for them.
func ParsePlugin(stdin []byte) (Plugin, error) {
	var top fields
	if err := json.Unmarshal(stdin, &top); err != nil {
		return Plugin{}, fmt.Errorf("read network configuration: %w", err)
	}
	plugin := Plugin{CachePath: DefaultCachePath, WaitForAddress: DefaultWaitForAddress, LogLevel: "info", PrevResult: top.get("prevResult")}
	var errs [3]error
	var kind string
	plugin.CNIVersion, errs[0] = top.text("cniVersion")
	plugin.Name, errs[1] = top.text("name")
	kind, errs[2] = top.text("type")
	if err := errors.Join(errs[:]...); err != nil {
		return Plugin{}, err
	}
	if plugin.CNIVersion == "" {
		plugin.CNIVersion = "0.1.0" // what an absent version means in the specification
	}
	given := options{fields: top}
	var ipam fields
	if value := top.get("ipam"); value != nil && json.Unmarshal(value, &ipam) == nil && kind != PluginType {
		if name, err := ipam.text("type"); err == nil && name == PluginType {
			plugin.Delegated, given = true, options{fields: ipam, prefix: "ipam."}
			plugin.Master, _ = top.text("master") // the other plugin refuses a wrong one itself
		}
	}
	plugin.setOptions(&given)
	given.errs = append(given.errs, refuseTypos(given.fields, given.prefix))
	if !plugin.Delegated { // else they are the other plugin's
		given.errs = append(given.errs, checkCapabilities(top))
	}
	return plugin, errors.Join(append(given.errs, plugin.setStandard(top), plugin.setValid(top), unsupportedKey(top), plugin.setExtras(top), plugin.setTopology(top))...)
}

// options reads the plugin's own keys and collects what is wrong with them.
type options struct {
	fields
	prefix string
	errs   []error
}

// read hands the key's value to set, which returns false if it does not want it.
func (o *options) read(key, want string, set func(json.RawMessage) bool) {
	if value := o.get(key); value != nil && !set(value) {
		o.errs = append(o.errs, &KeyError{Key: o.prefix + key, Value: string(value), Want: want})
	}
}

// decodeValue decodes the value into *into if it has that type and ok takes it, and tells whether
// it did.
func decodeValue[T any](value json.RawMessage, into *T, ok func(T) bool) bool {
	var t T
	if json.Unmarshal(value, &t) != nil || !ok(t) {
		return false
	}
	*into = t
	return true
}

func (p *Plugin) setOptions(given *options) {
	orEmpty := func(path string) bool { return path == "" || filepath.IsAbs(path) }
	given.read("cachePath", "an absolute path", func(value json.RawMessage) bool { return decodeValue(value, &p.CachePath, filepath.IsAbs) })
	given.read("waitForAddress", `a duration like "5s", from "0s" to "`+maxWait.String()+`"`, func(value json.RawMessage) bool {
		var text string
		return decodeValue(value, &text, func(text string) bool {
			d, err := time.ParseDuration(text)
			if err != nil || d < 0 || d > maxWait {
				return false
			}
			p.WaitForAddress = d
			return true
		})
	})
	given.read("mtu", "0 for the ENI's, or 576 to 65535", func(value json.RawMessage) bool {
		return decodeValue(value, &p.MTU, func(n int) bool { return n == 0 || n >= 576 && n <= 65535 })
	})
	given.read("logFile", "an absolute path", func(value json.RawMessage) bool { return decodeValue(value, &p.LogFile, orEmpty) })
	given.read("logLevel", "debug, info, warn or error", func(value json.RawMessage) bool {
		ok := decodeValue(value, &p.LogLevel, func(l string) bool {
			return slices.Contains([]string{"debug", "info", "warn", "error"}, strings.ToLower(l))
		})
		p.LogLevel = strings.ToLower(p.LogLevel)
		return ok
	})
	given.read("statusFailsWhenExhausted", "true or false", func(value json.RawMessage) bool {
		return decodeValue(value, &p.StatusFailsWhenExhausted, func(bool) bool { return true })
	})
}

// setValid reads the runtime's list of live attachments. An absent list and an
// empty or null one are different things: with null nothing is alive.
func (p *Plugin) setValid(top fields) error {
	// libcni 1.2.3 and later send both keys, older ones the first only.
	for _, key := range []string{"cni.dev/valid-attachments", "cni.dev/attachments"} {
		value, sent := top[key]
		if !sent {
			continue
		}
		var valid []types.GCAttachment
		if err := json.Unmarshal(value, &valid); err != nil {
			p.HasValid, p.Valid = false, nil // with an empty list a GC would free everything
			return &KeyError{Key: key, Value: string(value), Want: "a list of {containerID, ifname}"}
		}
		p.HasValid, p.Valid = true, append(p.Valid, valid...)
	}
	return nil
}

// unsupportedKey rejects capabilities that the network configuration declares and enipool does
// not have: what is asked for and not done must not seem to be done.
func unsupportedKey(top fields) error {
	value := top.get("runtimeConfig")
	if value == nil {
		return nil
	}
	var runtime fields
	if json.Unmarshal(value, &runtime) != nil {
		return &KeyError{Key: "runtimeConfig", Value: string(value), Want: "an object"}
	}
	var errs []error
	for _, key := range []string{"ips", "mac"} {
		if value := runtime.get(key); value != nil && string(value) != "[]" && string(value) != `""` {
			errs = append(errs, &KeyError{Key: "runtimeConfig." + key, Value: string(value), Unsupported: true,
				Want: "absent: the pool chooses addresses; remove the capability from the network configuration"})
		}
	}
	return errors.Join(errs...)
}
