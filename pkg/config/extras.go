package config

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/netconf"
)

// What a runtime asks for beyond addresses, with the keys of the portmap and
// bandwidth plugins, so that enipool can stand where those stood.

// maxBurst is the first burst in bits that is more than the kernel can count.
const maxBurst = 8 * (1<<32 - 1)

// foreignKeys are options of the portmap plugin that enipool does not have. A
// configuration that was copied from there must not seem to be obeyed.
var foreignKeys = [...]string{"backend", "conditionsV4", "conditionsV6", "externalSetMarkChain", "markMasqBit", "masqAll"}

// setExtras reads host ports and limits. A configuration of another plugin has
// its own options; as its IPAM we have no link to open ports or set limits on.
func (p *Plugin) setExtras(top fields) error {
	var runtime fields
	if v := top.get("runtimeConfig"); v != nil && json.Unmarshal(v, &runtime) != nil {
		return nil // unsupported tells
	}
	if p.Delegated {
		return refuseExtras(runtime)
	}
	r := extrasReader{extras: &p.Extras}
	for _, key := range foreignKeys {
		if v := top.get(key); v != nil {
			r.wrong(key, v, "absent: enipool has no such option; use the portmap plugin behind enipool, see conf/10-enipool-chain.conflist")
		}
	}
	if v := top.get("snat"); v != nil && string(v) != "true" {
		r.wrong("snat", v, "true or absent: connections that need it always get the node's address")
	}
	if v := runtime.get("portMappings"); v != nil {
		r.readPorts(v)
	}
	r.readLimits(top, runtime)
	if len(r.errs) > 0 {
		p.Extras = netconf.Extras{} // never half of what was asked for
	}
	return errors.Join(r.errs...)
}

func refuseExtras(runtime fields) error {
	var errs []error
	for _, key := range []string{"portMappings", "bandwidth"} {
		if v := runtime.get(key); v != nil && string(v) != "[]" && string(v) != "{}" {
			errs = append(errs, &KeyError{Key: "runtimeConfig." + key, Value: string(v), Unsupported: true,
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
		v := runtime.get("bandwidth")
		if v == nil {
			return
		}
		source, prefix = nil, "runtimeConfig.bandwidth."
		if json.Unmarshal(v, &source) != nil {
			r.wrong("runtimeConfig.bandwidth", v, "an object with ingressRate, ingressBurst, egressRate, egressBurst")
			return
		}
	}
	r.readLimit(source, prefix, "ingress", &r.extras.Limits.Ingress)
	r.readLimit(source, prefix, "egress", &r.extras.Limits.Egress)
}

func (r *extrasReader) readLimit(source fields, prefix, direction string, l *netconf.Limit) {
	rateKey, burstKey := direction+"Rate", direction+"Burst"
	rate, burst := source.get(rateKey), source.get(burstKey)
	if rate != nil && !decode(rate, &l.Rate, func(n uint64) bool { return n == 0 || n >= 8 }) {
		r.wrong(prefix+rateKey, rate, "0 for no limit, or at least 8 bits per second")
		return
	}
	if burst != nil && !decode(burst, &l.Burst, func(n uint64) bool { return n == 0 || n >= 8 && n < maxBurst }) {
		r.wrong(prefix+burstKey, burst, fmt.Sprintf("0 for no limit, or from 8 to %d bits", maxBurst-1))
		return
	}
	switch {
	case l.Rate != 0 && l.Burst == 0:
		r.wrong(prefix+burstKey, burst, "set where "+rateKey+" is")
	case l.Rate == 0 && l.Burst != 0:
		r.wrong(prefix+rateKey, rate, "set where "+burstKey+" is")
	}
}
