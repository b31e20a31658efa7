// Package region opens the cloud that an operator's configuration names.
package region

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/clouds"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/operatorconf"
)

// Open returns what an operator with this configuration calls for all nodes, and the actions that parts of its
// methods are made of. admit is asked before each request, which ends after the configuration's timeout; ended, if it is there, is told how
// that was, and log what the cloud forbids. It makes no call.
func Open(conf operatorconf.Config, admit func(ctx context.Context, action string) error, ended func(action string, err error), log *slog.Logger) (cloud.Region, func(part string) []string, error) {
	c := asAgents(conf.Cloud)
	d, err := clouds.Driver(c, c.Instance, log)
	if err != nil {
		return nil, nil, err
	}
	if err := checkBudget(conf, d.Traits()); err != nil {
		return nil, nil, err
	}
	o := clouds.Options(c, conf.Families, log)
	told := newRefused(c.Provider, log, time.Now)
	o.Admit, o.Limit = admit, c.Timeout
	o.Ended = func(action string, err error) {
		told.ended(action, err)
		if ended != nil {
			ended(action, err)
		}
	}
	if conf.Settle > operatorconf.Default().Settle { // else the driver's own consistency window counts
		o.Times.Settle = conf.Settle
	}
	return engine.NewRegion(d, o), d.Traits().ActionsOf, nil
}

// checkBudget returns an error for an action of the budget that nothing is ever asked for by: a misspelt one would limit nothing.
func checkBudget(conf operatorconf.Config, t driver.Traits) error {
	known := slices.Collect(maps.Keys(t.Buckets))
	for _, actions := range t.Requests {
		known = append(known, actions...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, action := range slices.Sorted(maps.Keys(conf.Budget)) {
		if !slices.Contains(known, action) {
			return fmt.Errorf("budget[%s]: unknown action; with cloud.provider %s there are %s", action, conf.Cloud.Provider, strings.Join(known, ", "))
		}
	}
	return nil
}

// asAgents returns the cloud as an agent on the operator's instance would name it.
func asAgents(c operatorconf.Cloud) agentconf.Cloud {
	return agentconf.Cloud{Provider: c.Provider, Endpoint: c.Endpoint, Metadata: c.Metadata, Region: c.Region, Instance: c.Instance, VPC: c.VPC,
		Cluster: c.Cluster, Subnets: c.Subnets, SubnetTags: c.SubnetTags, SecurityGroups: c.SecurityGroups, Tags: c.Tags, Prefixes: c.Prefixes, CrossSubnet: c.CrossSubnet, Timeout: c.Timeout}
}
