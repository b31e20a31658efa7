// Package config turns what people and runtimes write into values that need no
// further checks. Each error names the key, the value and what is allowed.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"
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
	Delegated  bool   // we are another plugin's IPAM
	Master     string // the other plugin's "master" link, "" if it has none

	CachePath                string
	WaitForAddress           time.Duration // 0: fail at once
	MTU                      int           // bytes; 0: the ENI's
	LogFile                  string        // "" for none
	LogLevel                 string        // debug, info, warn, error
	StatusFailsWhenExhausted bool

	PrevResult json.RawMessage      // nil if there is none
	Valid      []types.GCAttachment // for GC
	HasValid   bool                 // the runtime sent a list, if only an empty one
}

// KeyError says which key of a configuration is wrong, and how.
type KeyError struct {
	Key   string
	Value string // as written
	Want  string
	// Unsupported marks a key that is right but asks for what we don't do.
	Unsupported bool
}

// Error names key, value and what is allowed.
func (e *KeyError) Error() string { return fmt.Sprintf("%s: %s: must be %s", e.Key, e.Value, e.Want) }

// rawPlugin is the configuration as it comes; encoding/json matches keys without
// regard to case, which some runtimes need. Options stay raw so that one of a
// wrong type can be named, and so that DEL can do without it.
type rawPlugin struct {
	CNIVersion string                     `json:"cniVersion"`
	Name       string                     `json:"name"`
	Type       string                     `json:"type"`
	Master     json.RawMessage            `json:"master"`
	IPAM       json.RawMessage            `json:"ipam"`
	Runtime    map[string]json.RawMessage `json:"runtimeConfig"`
	PrevResult json.RawMessage            `json:"prevResult"`
	// libcni 1.2.3 and later send both, older ones the second only.
	Attachments json.RawMessage `json:"cni.dev/attachments"`
	Valid       json.RawMessage `json:"cni.dev/valid-attachments"`
	rawOptions
}

type rawOptions struct {
	CachePath      json.RawMessage `json:"cachePath"`
	WaitForAddress json.RawMessage `json:"waitForAddress"`
	MTU            json.RawMessage `json:"mtu"`
	LogFile        json.RawMessage `json:"logFile"`
	LogLevel       json.RawMessage `json:"logLevel"`
	StatusFails    json.RawMessage `json:"statusFailsWhenExhausted"`
}

// ParsePlugin reads what a runtime sends on standard input. Unknown keys are
// tolerated. With an error that is made of *KeyError the Plugin is usable all
// the same, with defaults for the keys in error: a DEL must not fail for them.
func ParsePlugin(stdin []byte) (Plugin, error) {
	var raw rawPlugin
	if err := json.Unmarshal(stdin, &raw); err != nil {
		return Plugin{}, fmt.Errorf("read network configuration: %w", err)
	}
	p := Plugin{
		CNIVersion: raw.CNIVersion, Name: raw.Name, CachePath: DefaultCachePath,
		WaitForAddress: DefaultWaitForAddress, LogLevel: "info",
	}
	if p.CNIVersion == "" {
		p.CNIVersion = "0.1.0" // what an absent version means in the specification
	}
	if !isNull(raw.PrevResult) {
		p.PrevResult = raw.PrevResult
	}
	options, prefix := raw.rawOptions, ""
	var ipam struct {
		Type string `json:"type"`
		rawOptions
	}
	if !isNull(raw.IPAM) && json.Unmarshal(raw.IPAM, &ipam) == nil && ipam.Type == PluginType && raw.Type != PluginType {
		p.Delegated, options, prefix = true, ipam.rawOptions, "ipam."
		_ = json.Unmarshal(raw.Master, &p.Master) // the other plugin complains about its own keys
	}
	return p, errors.Join(p.setOptions(options, prefix), p.setValid(raw), unsupported(raw.Runtime))
}

func isNull(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

func (p *Plugin) setOptions(raw rawOptions, prefix string) error {
	var errs []error
	set := func(key string, value json.RawMessage, want string, into any, ok func() bool, undo func()) {
		if isNull(value) {
			return
		}
		if json.Unmarshal(value, into) != nil || !ok() {
			undo()
			errs = append(errs, &KeyError{Key: prefix + key, Value: string(value), Want: want})
		}
	}
	path := p.CachePath
	set("cachePath", raw.CachePath, "an absolute path", &path, func() bool { return filepath.IsAbs(path) }, func() { path = p.CachePath })
	p.CachePath = path
	var wait string
	set("waitForAddress", raw.WaitForAddress, fmt.Sprintf(`a duration like "5s", from "0s" to "%s"`, maxWait), &wait, func() bool {
		d, err := time.ParseDuration(wait)
		if err != nil || d < 0 || d > maxWait {
			return false
		}
		p.WaitForAddress = d
		return true
	}, func() {})
	set("mtu", raw.MTU, "0 for the ENI's, or 576 to 65535", &p.MTU, func() bool { return p.MTU == 0 || p.MTU >= 576 && p.MTU <= 65535 }, func() { p.MTU = 0 })
	set("logFile", raw.LogFile, "an absolute path", &p.LogFile, func() bool { return p.LogFile == "" || filepath.IsAbs(p.LogFile) }, func() { p.LogFile = "" })
	set("logLevel", raw.LogLevel, "debug, info, warn or error", &p.LogLevel, func() bool {
		p.LogLevel = strings.ToLower(p.LogLevel)
		return p.LogLevel == "debug" || p.LogLevel == "info" || p.LogLevel == "warn" || p.LogLevel == "error"
	}, func() { p.LogLevel = "info" })
	set("statusFailsWhenExhausted", raw.StatusFails, "true or false", &p.StatusFailsWhenExhausted, func() bool { return true }, func() { p.StatusFailsWhenExhausted = false })
	return errors.Join(errs...)
}

// setValid reads the runtime's list of live attachments. An absent list and an
// empty or null one are different things: with null nothing is alive.
func (p *Plugin) setValid(raw rawPlugin) error {
	for _, list := range []struct {
		key   string
		value json.RawMessage
	}{{"cni.dev/valid-attachments", raw.Valid}, {"cni.dev/attachments", raw.Attachments}} {
		if list.value == nil {
			continue
		}
		var valid []types.GCAttachment
		if err := json.Unmarshal(list.value, &valid); err != nil {
			p.HasValid, p.Valid = false, nil // a GC that went on would take everything
			return &KeyError{Key: list.key, Value: string(list.value), Want: "a list of {containerID, ifname}"}
		}
		p.HasValid, p.Valid = true, append(p.Valid, valid...)
	}
	return nil
}

// unsupported rejects capabilities that somebody declared for us: what is asked
// for and not done must not look done.
func unsupported(runtime map[string]json.RawMessage) error {
	var errs []error
	for _, key := range []string{"ips", "mac"} {
		if v := runtime[key]; !isNull(v) && string(v) != "[]" && string(v) != `""` {
			errs = append(errs, &KeyError{Key: "runtimeConfig." + key, Value: string(v), Unsupported: true,
				Want: "absent: the pool chooses addresses; remove the capability from the network configuration"})
		}
	}
	return errors.Join(errs...)
}
