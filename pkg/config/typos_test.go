package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAKeyThatIsNearlyOneOfOursIsRefused(t *testing.T) {
	for stdin, want := range map[string]string{
		`{"type": "enipool", "waitForAddres": "1s"}`:                                      `waitForAddres: "1s": must be removed or renamed: there is no such key; is waitForAddress meant?`,
		`{"type": "enipool", "capabilites": {}}`:                                          `capabilites: {}: must be removed or renamed: there is no such key; is capabilities meant?`,
		`{"type": "enipool", "mtus": 1500}`:                                               `is mtu meant?`,
		`{"type": "enipool", "logLvel": "debug"}`:                                         `is logLevel meant?`,
		`{"type": "enipool", "ingresRate": 8}`:                                            `is ingressRate meant?`,
		`{"type": "ptp", "ipam": {"type": "enipool", "cachPath": "/c"}}`:                  `ipam.cachPath: "/c": must be removed or renamed: there is no such key; is ipam.cachePath meant?`,
		`{"type": "enipool", "capabilities": {"portMapping": true}}`:                      `capabilities.portMapping: true: must be removed or renamed: there is no such capability; is portMappings meant?`,
		`{"type": "enipool", "capabilities": {"portmappings": true}}`:                     `is portMappings meant?`,
		`{"type": "enipool", "capabilities": {"bandwith": true, "bandwidth":true}}`:       `is bandwidth meant?`,
		`{"type": "enipool", "capabilities": {"io.kubernetes.cri.pod-annotation": true}}`: `is io.kubernetes.cri.pod-annotations meant?`,
		`{"type": "enipool", "capabilities": {"portMappings": "yes"}}`:                    `capabilities: {"portMappings": "yes"}: must be an object like {"portMappings": true, "bandwidth": true}`,
		`{"type": "enipool", "capabilities": ["portMappings"]}`:                           `capabilities: ["portMappings"]: must be an object`,
	} {
		p, err := ParsePlugin([]byte(stdin))
		var bad *KeyError
		if !strings.Contains(fmt.Sprint(err), want) || !errors.As(err, &bad) || bad.Unsupported {
			t.Errorf("%s: %v, want %s", stdin, err, want)
		}
		if p.CachePath == "" {
			t.Errorf("%s: a DEL can't be done with what is left: %+v", stdin, p)
		}
	}
}

func TestKeysOfTheSpecificationAndOfRuntimesPass(t *testing.T) {
	for _, stdin := range []string{
		`{"cniVersion": "1.1.0", "cniVersions": ["1.1.0"], "name": "n", "type": "enipool", "args": {"cni": {}}, "runtimeConfig": {}, "prevResult": {}, "capabilities": {},
			"dns": {}, "ipMasq": true, "ipam": {}, "disableCheck": true, "disableGC": true, "loadOnlyInlinedPlugins": true, "cni.dev/valid-attachments": [],
			"cni.dev/attachments": [], "io.kubernetes.cri.pod-annotations": {}, "mac": "x", "ips": [], "snat": true, "delegates": [], "colour": 1, "MTU": 1500}`,
		`{"type": "enipool", "capabilities": {"portMappings": true, "bandwidth": false, "ips": true, "mac": true, "dns": true, "aliases": true, "ipRanges": true,
			"infinibandGUID": true, "deviceID": true, "CNIDeviceInfoFile": true, "cgroupPath": true, "io.kubernetes.cri.pod-annotations": true}}`,
		`{"type": "bridge", "mtus": 1, "capabilities": ["x"], "waitForAddres": 1, "ipam": {"type": "enipool", "routes": [], "ranges": [], "subnet": "x"}}`,
	} {
		if _, err := ParsePlugin([]byte(stdin)); err != nil {
			t.Errorf("%s: %v", stdin, err)
		}
	}
}

func TestTheNearestNameIsMeant(t *testing.T) {
	names := []string{"cachePath", "mtu", "vpcCIDRs", "pool.batch"}
	for text, want := range map[string]string{"cachepath": "cachePath", "cachPat": "cachePath", "cchPat": "", "mt": "mtu", "mac": "", "": "", "vpcCIDR": "vpcCIDRs",
		"pool.bacth": "pool.batch", "somethingElse": "", "mut": "mtu", "tum": ""} {
		if got := Meant(text, names); got != want {
			t.Errorf("%q means %q, want %q", text, got, want)
		}
	}
}
