// Package clouds opens the cloud that a configuration names. It is the only package that imports
// all of them.
package clouds

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/aws"
	"github.com/enipool/enipool/pkg/cloud/bce"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
)

// Open returns the cloud of the node that has this configuration, nil where an operator calls it. It makes no call.
func Open(conf agentconf.Config, log *slog.Logger) (cloud.Cloud, error) {
	c := conf.Cloud
	switch c.Provider {
	case agentconf.Operator:
		return nil, nil
	case agentconf.AWS:
		d := aws.New(aws.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance, Log: log})
		return engine.New(d, nodeOptions(conf, log)), nil
	case agentconf.Baidu:
		if err := bce.CheckGroups(c.SecurityGroups); err != nil {
			return nil, fmt.Errorf("cloud.securityGroups: %w", err)
		}
		d, err := bce.New(bce.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance,
			Kind: bce.Kind(c.Kind), VPC: c.VPC, Zone: c.Zone, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		return engine.New(d, nodeOptions(conf, log)), nil
	}
	d, err := sim.Dial(c.Endpoint, conf.Node)
	if err != nil {
		return nil, err
	}
	// The simulated account itself says which subnets a node's new ENIs may lie in, by a tag.
	o := nodeOptions(conf, log)
	if len(o.Subnets)+len(o.SubnetTags) == 0 {
		o.SubnetTags = sim.AnySubnet()
	}
	return engine.New(d, o), nil
}

// nodeOptions returns what the configuration says about the node's ENIs, the same for every cloud.
func nodeOptions(conf agentconf.Config, log *slog.Logger) engine.Options {
	c, has6 := conf.Cloud, slices.Contains(conf.Settings.Families, eni.IPv6)
	times := driver.Times{}
	if conf.Settle > agentconf.Default().Settle { // else the driver's own consistency window counts
		times.Settle = conf.Settle
	}
	return engine.Options{Times: times, Subnets: c.Subnets, SubnetTags: c.SubnetTags, SecurityGroups: c.SecurityGroups,
		Cluster: c.Cluster, Tags: c.Tags, Prefixes: c.Prefixes, IPv6: has6, NoIPv4: has6 && !slices.Contains(conf.Settings.Families, eni.IPv4),
		Limits: eni.Limits{ENIs: c.MaxENIs, V4: c.MaxIPsPerENI}, Log: log}
}
