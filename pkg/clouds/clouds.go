// Package clouds opens the cloud that a configuration names. It is the only place
// that knows all of them.
package clouds

import (
	"log/slog"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/aws"
	"github.com/enipool/enipool/pkg/cloud/bce"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
)

// Open returns the cloud of the node whose configuration it is. It makes no call.
func Open(conf agentconf.Config, log *slog.Logger) (cloud.Cloud, error) {
	c, v6 := conf.Cloud, slices.Contains(conf.Settings.Families, eni.IPv6)
	switch c.Provider {
	case agentconf.AWS:
		return aws.New(aws.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance,
			Subnets: c.Subnets, SubnetTags: c.SubnetTags, SecurityGroups: c.SecurityGroups,
			Cluster: c.Cluster, Tags: c.Tags, Prefixes: c.Prefixes, IPv6: v6, Log: log}), nil
	case agentconf.BCE:
		client, err := bce.New(bce.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance,
			Subnets: c.Subnets, SubnetTags: c.SubnetTags, SecurityGroups: c.SecurityGroups,
			Cluster: c.Cluster, Tags: c.Tags, IPv6: v6, Timeout: c.Timeout, Log: log})
		if err != nil {
			return nil, err
		}
		return client, nil
	}
	return sim.Dial(c.Endpoint, conf.Node)
}
