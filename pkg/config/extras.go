package config

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/netconf"
)

// What a runtime asks for beyond addresses, with the keys of the portmap and bandwidth plugins,
// so that enipool can replace those.

// maxBurst is the first burst in bits that is more than the kernel can count.
const maxBurst = 8 * (1<<32 - 1)

// portmapKeys are options of the portmap plugin that enipool does not have. A
// configuration that was copied from there must not seem to be obeyed.
var portmapKeys = [...]string{"backend", "conditionsV4", "conditionsV6", "externalSetMarkChain", "markMasqBit", "masqAll"}

// setExtras reads host ports and limits. As another plugin's IPAM enipool has no link to open
// ports or set limits on: there it refuses both.
func (p *Plugin) setExtras(top fields) error {
	var runtime fields
	if value := top.get("runtimeConfig"); value != nil && json.Unmarshal(value, &runtime) != nil {
		return nil // unsupportedKey refuses it
	}
	if p.Delegated {
		return refuseExtras(runtime)
	}
	extras := extrasReader{extras: &p.Extras}
	for _, key := range portmapKeys {
		if value := top.get(key); value != nil {
			extras.wrong(key, value, "absent: enipool has no such option; use the portmap plugin behind enipool, see conf/10-enipool-chain.conflist")
		}
	}
	if value := top.get("snat"); value != nil && string(value) != "true" {
		extras.wrong("snat", value, "true or absent: connections that need it always get the node's address")
	}
	if value := runtime.get("portMappings"); value != nil {
		extras.readPorts(value)
	}
	extras.readLimits(top, runtime)
	if len(extras.errs) > 0 {
		p.Extras = netconf.Extras{} // never half of what was asked for
	}
	return errors.Join(extras.errs...)
}

// refuseExtras refuses what a runtime sends for enipool as another plugin's IPAM.
func refuseExtras(runtime fields) error {
	var errs []error
	for _, key := range []string{"portMappings", "bandwidth"} {
		if value := runtime.get(key); value != nil && string(value) != "[]" && string(value) != "{}" {
			errs = append(errs, &KeyError{Key: "runtimeConfig." + key, Value: string(value), Unsupported: true,
				Want: "absent: enipool does it for links of its own only; declare the capability at the portmap or bandwidth plugin"})
		}
	}
	return errors.Join(errs...)
}

type extrasReader struct {
	extras *netconf.Extras
	errs   []error
}

func (r *extrasReader) wrong(key string, value json.RawMessage, want string) {
	text := string(value)
	if value == nil {
		text = "absent"
	}
	r.errs = append(r.errs, &KeyError{Key: key, Value: text, Want: want})
}

// readLimits takes the limits of the network's configuration, if it has any, else
// those of the pod, as the bandwidth plugin does.
func (r *extrasReader) readLimits(top, runtime fields) {
	source, prefix := top, ""
	if top.get("ingressRate") == nil && top.get("ingressBurst") == nil && top.get("egressRate") == nil && top.get("egressBurst") == nil {
		value := runtime.get("bandwidth")
		if value == nil {
			return
		}
		source, prefix = nil, "runtimeConfig.bandwidth."
		if json.Unmarshal(value, &source) != nil {
			r.wrong("runtimeConfig.bandwidth", value, "an object with ingressRate, ingressBurst, egressRate, egressBurst")
			return
		}
	}
	r.readLimit(source, prefix, "ingress", &r.extras.Limits.Ingress)
	r.readLimit(source, prefix, "egress", &r.extras.Limits.Egress)
}

func (r *extrasReader) readLimit(source fields, prefix, direction string, limit *netconf.Limit) {
	rateKey, burstKey := direction+"Rate", direction+"Burst"
	rate, burst := source.get(rateKey), source.get(burstKey)
	if rate != nil && !decodeValue(rate, &limit.Rate, func(n uint64) bool { return n == 0 || n >= 8 }) {
		r.wrong(prefix+rateKey, rate, "0 for no limit, or at least 8 bits per second")
		return
	}
	if burst != nil && !decodeValue(burst, &limit.Burst, func(n uint64) bool { return n == 0 || n >= 8 && n < maxBurst }) {
		r.wrong(prefix+burstKey, burst, fmt.Sprintf("0 for no limit, or from 8 to %d bits", maxBurst-1))
		return
	}
	switch {
	case limit.Rate != 0 && limit.Burst == 0:
		r.wrong(prefix+burstKey, burst, "set where "+rateKey+" is")
	case limit.Rate == 0 && limit.Burst != 0:
		r.wrong(prefix+rateKey, rate, "set where "+burstKey+" is")
	}
}
