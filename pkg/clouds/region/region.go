// Package region opens the cloud that an operator's configuration names.
package region

import (
	"context"
	"log/slog"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/clouds"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/operatorconf"
)

// Open returns what an operator with this configuration calls for all nodes, and the actions that parts of its
// methods are made of. admit is asked before each request, which ends after the configuration's timeout. It makes no call.
func Open(conf operatorconf.Config, admit func(ctx context.Context, action string) error, log *slog.Logger) (cloud.Region, func(part string) []string, error) {
	c := asAgents(conf.Cloud)
	d, err := clouds.Driver(c, c.Instance, log)
	if err != nil {
		return nil, nil, err
	}
	o := clouds.Options(c, conf.Families, log)
	o.Admit, o.Limit = admit, c.Timeout
	if conf.Settle > operatorconf.Default().Settle { // else the driver's own consistency window counts
		o.Times.Settle = conf.Settle
	}
	return engine.NewRegion(d, o), d.Traits().ActionsOf, nil
}

// asAgents returns the cloud as an agent on the operator's instance would name it.
func asAgents(c operatorconf.Cloud) agentconf.Cloud {
	return agentconf.Cloud{Provider: c.Provider, Endpoint: c.Endpoint, Metadata: c.Metadata, Region: c.Region, Instance: c.Instance, VPC: c.VPC,
		Cluster: c.Cluster, Subnets: c.Subnets, SubnetTags: c.SubnetTags, SecurityGroups: c.SecurityGroups, Tags: c.Tags, Prefixes: c.Prefixes, Timeout: c.Timeout}
}
