package bce

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/baidubce/bce-sdk-go/model"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Create implements driver.Driver: an ENI with its primary address, and where it has IPv6
// one address of that. Its body depends on nothing that changes from try to try.
func (d *Driver) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	text, ok := describe(c.Mark)
	if !ok {
		return driver.Interface{}, d.fail(ctx, cloud.ErrForbidden,
			"an ENI's description can't hold this: the token must have 1 to 64 visible ASCII characters, the cluster at most 32: "+text)
	}
	g, err := parseGroups(c.Groups)
	if err != nil {
		return driver.Interface{}, d.fail(ctx, cloud.ErrForbidden, err.Error())
	}
	body := sdk.CreateEniArgs{
		Name: nameOf(c.Mark.Instance), Description: text, SubnetId: c.Subnet,
		SecurityGroupIds: g.plain, EnterpriseSecurityGroupIds: g.enterprise,
		PrivateIpSet: []sdk.PrivateIp{{Primary: true}},
	}
	if c.IPv6 {
		body.Ipv6PrivateIpSet = []sdk.PrivateIp{{}}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Tags)) {
		body.Tags = append(body.Tags, model.TagModel{TagKey: key, TagValue: c.Tags[key]})
	}
	var a sdk.CreateEniResult
	r := request{method: "POST", path: eniPath, token: c.Token, body: body, into: &a}
	if err := d.do(ctx, r); err != nil {
		return driver.Interface{}, err
	}
	if !validID(a.EniId) {
		return driver.Interface{}, d.badAnswer(r, fmt.Sprintf("the new ENI's id is %q", a.EniId))
	}
	return driver.Interface{ID: a.EniId}, nil
}

// Attach implements driver.Driver.
func (d *Driver) Attach(ctx context.Context, a driver.Attach) (attachment string, err error) {
	return "", d.change(ctx, a.ID, "attach", a.Token, sdk.EniInstance{InstanceId: &a.Instance})
}

// Detach implements driver.Driver.
func (d *Driver) Detach(ctx context.Context, i driver.Interface, token string) error {
	return d.change(ctx, i.ID, "detach", token, sdk.EniInstance{InstanceId: &i.Instance})
}

// Rewrite implements driver.Driver.
func (d *Driver) Rewrite(ctx context.Context, id string, m driver.Mark, token string) error {
	text, ok := describe(m)
	if !ok {
		return d.fail(ctx, cloud.ErrForbidden, "an ENI's description can't hold this: "+text)
	}
	return d.change(ctx, id, "modifyAttribute", token, sdk.UpdateEniArgs{Description: &text})
}

// SetGroups implements driver.Driver.
func (d *Driver) SetGroups(ctx context.Context, id string, ids []string, token string) error {
	g, err := parseGroups(ids)
	switch {
	case err != nil:
		return d.fail(ctx, cloud.ErrForbidden, err.Error())
	case len(g.enterprise) > 0:
		return d.change(ctx, id, "bindEsg", token, sdk.UpdateEniEnterpriseSecurityGroupArgs{EnterpriseSecurityGroupIds: g.enterprise})
	}
	return d.change(ctx, id, "bindSg", token, sdk.UpdateEniSecurityGroupArgs{SecurityGroupIds: g.plain})
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, id, token string) error {
	return d.onENI(ctx, id, request{method: "DELETE", token: token})
}

// change does something to an ENI.
func (d *Driver) change(ctx context.Context, id, action, token string, body any) error {
	return d.onENI(ctx, id, request{method: "PUT", query: map[string]string{action: ""}, token: token, body: body})
}

// onENI makes a request about an ENI, whose path continues the ENI's.
func (d *Driver) onENI(ctx context.Context, id string, r request) error {
	if !validID(id) {
		return &driver.Error{Kind: cloud.ErrNotFound, Why: driver.NoSuchInterface, Detail: "no such ENI"}
	}
	r.path = eniPath + "/" + id + r.path
	return d.do(ctx, r)
}
