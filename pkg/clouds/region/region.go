// Package region opens the cloud that an operator's configuration names.
package region

import (
	"context"
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
	"github.com/enipool/enipool/pkg/config/operatorconf"
	"github.com/enipool/enipool/pkg/eni"
)

// Open returns what an operator with this configuration calls for all nodes, and the actions that parts of its
// methods are made of. admit is asked before each request, which ends after the configuration's timeout; ended, if it is there, is told how
// that was. It makes no call.
func Open(conf operatorconf.Config, admit func(ctx context.Context, action string) error, ended func(action string, err error), log *slog.Logger) (cloud.Region, func(part string) []string, error) {
	d, err := openDriver(conf.Cloud, log)
	if err != nil {
		return nil, nil, err
	}
	c, has6 := conf.Cloud, slices.Contains(conf.Families, eni.IPv6)
	o := engine.Options{Subnets: c.Subnets, SubnetTags: c.SubnetTags, SecurityGroups: c.SecurityGroups, Cluster: c.Cluster, Tags: c.Tags,
		Prefixes: c.Prefixes, IPv6: has6, NoIPv4: has6 && !slices.Contains(conf.Families, eni.IPv4), Admit: admit, Ended: ended, Limit: c.Timeout, Log: log}
	if conf.Settle > operatorconf.Default().Settle { // else the driver's own consistency window counts
		o.Times = driver.Times{Settle: conf.Settle}
	}
	return engine.NewRegion(d, o), d.Traits().ActionsOf, nil
}

func openDriver(c operatorconf.Cloud, log *slog.Logger) (driver.Driver, error) {
	switch c.Provider {
	case agentconf.AWS:
		return aws.New(aws.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance, Log: log}), nil
	case agentconf.Baidu:
		if err := bce.CheckGroups(c.SecurityGroups); err != nil {
			return nil, fmt.Errorf("cloud.securityGroups: %w", err)
		}
		return bce.New(bce.Options{Region: c.Region, Endpoint: c.Endpoint, Metadata: c.Metadata, Instance: c.Instance, VPC: c.VPC, Timeout: c.Timeout})
	}
	return sim.Dial(c.Endpoint, c.Instance)
}
