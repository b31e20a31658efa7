package main

import (
	"io"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

func TestWhatNamesTheCloudNeedsARestart(t *testing.T) {
	parse := func(provider, lines string) agentconf.Config {
		t.Helper()
		conf, err := agentconf.Parse([]byte("vpcCIDRs: [10.0.0.0/16]\ncloud:\n  provider: " + provider + "\n" + lines))
		if err != nil {
			t.Fatal(err)
		}
		return conf
	}
	r := newReload(parse("bce", ""), io.Discard)
	for line, want := range map[string]string{
		"kind: bbc":        "cloud.kind",
		"vpc: vpc-1":       "cloud.vpc",
		"zone: cn-bj-a":    "cloud.zone",
		"maxENIs: 3":       "cloud.maxENIs",
		"maxIPsPerENI: 40": "cloud.maxIPsPerENI",
	} {
		if got := strings.Join(r.fixed(parse("bce", "  "+line+"\n")), " "); got != want {
			t.Errorf("%s: keys %q want a restart, want %q", line, got, want)
		}
	}
	r = newReload(parse("aws", ""), io.Discard)
	for line, want := range map[string]string{
		"endpoint: https://ec2.example.org":  "cloud.endpoint",
		"metadata: 'http://[fd00:ec2::254]'": "cloud.metadata",
		"region: eu-central-1":               "cloud.region",
		"instance: i-1":                      "cloud.instance",
		"cluster: prod":                      "cloud.cluster",
		"subnets: [subnet-1]":                "cloud.subnets",
		"subnetTags: {pods: here}":           "cloud.subnetTags",
		"securityGroups: [sg-1]":             "cloud.securityGroups",
		"tags: {team: net}":                  "cloud.tags",
		"prefixes: true":                     "cloud.prefixes",
		"callsPerSecond: 7":                  "",
		"timeout: 20s":                       "",
		"concurrent: 2":                      "",
	} {
		if got := strings.Join(r.fixed(parse("aws", "  "+line+"\n")), " "); got != want {
			t.Errorf("%s: keys %q want a restart, want %q", line, got, want)
		}
	}
}
