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
	if conf.Cloud.Provider == agentconf.Operator {
		return nil, nil
	}
	d, err := Driver(conf.Cloud, conf.Node, log)
	if err != nil {
		return nil, err
	}
	o := nodeOptions(conf, log)
	// The simulated account itself says which subnets a node's new ENIs may lie in, by a tag.
	if conf.Cloud.Provider == agentconf.Sim && len(o.Subnets)+len(o.SubnetTags) == 0 {
		o.SubnetTags = sim.AnySubnet()
	}
	return engine.New(d, o), nil
}

// Driver returns the driver of the cloud. node is the name of the instance in a simulated account.
func Driver(c agentconf.Cloud, node string, log *slog.Logger) (driver.Driver, error) {
	switch c.Provider {
	case agentconf.AWS:
		return aws.New(aws.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance, Log: log}), nil
	case agentconf.Baidu:
		if err := bce.CheckGroups(c.SecurityGroups); err != nil {
			return nil, fmt.Errorf("cloud.securityGroups: %w", err)
		}
		return bce.New(bce.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance,
			Kind: bce.Kind(c.Kind), VPC: c.VPC, Zone: c.Zone, CrossSubnet: c.CrossSubnet, Timeout: c.Timeout})
	}
	d, err := sim.Dial(c.Endpoint, node)
	if err != nil {
		return nil, err
	}
	d.CrossSubnet = c.CrossSubnet
	return d, nil
}

// nodeOptions returns what the configuration says about the node's ENIs, the same for every cloud.
func nodeOptions(conf agentconf.Config, log *slog.Logger) engine.Options {
	o := Options(conf.Cloud, conf.Settings.Families, log)
	if conf.Settle > agentconf.Default().Settle { // else the driver's own consistency window counts
		o.Times.Settle = conf.Settle
	}
	return o
}

// Options returns what new ENIs are like, for pods with addresses of those families.
func Options(c agentconf.Cloud, families []eni.Family, log *slog.Logger) engine.Options {
	has6 := slices.Contains(families, eni.IPv6)
	return engine.Options{Subnets: c.Subnets, SubnetTags: c.SubnetTags, SecurityGroups: c.SecurityGroups,
		Cluster: c.Cluster, Tags: c.Tags, Prefixes: c.Prefixes, IPv6: has6, NoIPv4: has6 && !slices.Contains(families, eni.IPv4),
		Limits: eni.Limits{ENIs: c.MaxENIs, V4: c.MaxIPsPerENI}, Log: log}
}
