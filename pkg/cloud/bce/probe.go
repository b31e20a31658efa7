package bce

import (
	"context"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Probe implements driver.Prober. The API has no dry runs, and tells of security groups
// only when it makes an ENI.
func (d *Driver) Probe(_ context.Context, p driver.Probe) []cloud.Finding {
	var found cloud.Findings
	found.Say("permissions", cloud.Unknown, "", "the API has no dry run: whether ENIs may be made and changed shows when the agent does it; conf/baidu/policy.json lists what it needs")
	names := strings.Join(p.Groups, " ")
	if p.Named {
		found.Say("security groups", cloud.Unknown, "", "%s: the API tells only when it makes an ENI whether they are right", names)
	} else {
		found.Say("security groups", cloud.Works, "", "those of the node's own ENI: %s", names)
	}
	return found
}
