package config

import (
	"encoding/json"

	"github.com/containernetworking/cni/pkg/types"
)

// setStandard reads the keys that the specification gives all main plugins: dns goes into
// the result, and no other plugin's addresses are asked for.
func (p *Plugin) setStandard(top fields) error {
	if p.Delegated {
		return nil // both are the caller's
	}
	if value := top.get("ipam"); value != nil && !saysNothing(value) {
		return &KeyError{Key: "ipam", Value: string(value), Want: `absent: enipool brings its own addresses, and its options stand beside "type"`}
	}
	value := top.get("dns")
	if value == nil {
		return nil
	}
	var dns types.DNS
	if json.Unmarshal(value, &dns) != nil {
		return &KeyError{Key: "dns", Value: string(value), Want: "an object of nameservers, domain, search and options"}
	}
	p.DNS = dns
	return nil
}

// saysNothing tells whether an ipam section asks for nothing: it is empty, or it names enipool
// and nothing else.
func saysNothing(ipam json.RawMessage) bool {
	var f fields
	if json.Unmarshal(ipam, &f) != nil {
		return false
	}
	kind, err := f.text("type")
	return err == nil && (len(f) == 0 || len(f) == 1 && kind == PluginType)
}
