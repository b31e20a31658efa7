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

// Create implements driver.Driver: an ENI with its primary address and, if pods have IPv6, one
// IPv6 address.
func (d *Driver) Create(ctx context.Context, asked driver.Create) (driver.Interface, error) {
	text, ok := markText(asked.Mark)
	if !ok {
		return driver.Interface{}, d.ownError(ctx, cloud.ErrForbidden,
			"an ENI's description can't hold this: the token must have 1 to 64 visible ASCII characters, the cluster at most 32: "+text)
	}
	g, err := parseGroups(asked.Groups)
	if err != nil {
		return driver.Interface{}, d.ownError(ctx, cloud.ErrForbidden, err.Error())
	}
	body := sdk.CreateEniArgs{Name: nameOf(asked.Mark.Instance), Description: text, SubnetId: asked.Subnet,
		SecurityGroupIds: g.plain, EnterpriseSecurityGroupIds: g.enterprise, PrivateIpSet: []sdk.PrivateIp{{Primary: true}}}
	if asked.IPv6 {
		body.Ipv6PrivateIpSet = []sdk.PrivateIp{{}}
	}
	// Sorted: a repetition with the same token is refused if its body is another one.
	for _, key := range slices.Sorted(maps.Keys(asked.Tags)) {
		body.Tags = append(body.Tags, model.TagModel{TagKey: key, TagValue: asked.Tags[key]})
	}
	var a sdk.CreateEniResult
	r := request{method: "POST", path: eniPath, token: asked.Token, body: body, into: &a}
	if err := d.send(ctx, r); err != nil {
		return driver.Interface{}, err
	}
	if !validID(a.EniId) {
		return driver.Interface{}, d.badAnswer(r, fmt.Sprintf("the new ENI's id is %q", a.EniId))
	}
	return driver.Interface{ID: a.EniId}, nil
}

// Attach implements driver.Driver.
func (d *Driver) Attach(ctx context.Context, a driver.Attach) (attachment string, err error) {
	return "", d.changeENI(ctx, a.ID, "attach", a.Token, sdk.EniInstance{InstanceId: &a.Instance})
}

// Detach implements driver.Driver.
func (d *Driver) Detach(ctx context.Context, i driver.Interface, token string) error {
	return d.changeENI(ctx, i.ID, "detach", token, sdk.EniInstance{InstanceId: &i.Instance})
}

// Rewrite implements driver.Driver.
func (d *Driver) Rewrite(ctx context.Context, id string, m driver.Mark, token string) error {
	text, ok := markText(m)
	if !ok {
		return d.ownError(ctx, cloud.ErrForbidden, "an ENI's description can't hold this: "+text)
	}
	return d.changeENI(ctx, id, "modifyAttribute", token, sdk.UpdateEniArgs{Description: &text})
}

// SetGroups implements driver.Driver.
func (d *Driver) SetGroups(ctx context.Context, id string, ids []string, token string) error {
	g, err := parseGroups(ids)
	switch {
	case err != nil:
		return d.ownError(ctx, cloud.ErrForbidden, err.Error())
	case len(g.enterprise) > 0:
		return d.changeENI(ctx, id, "bindEsg", token, sdk.UpdateEniEnterpriseSecurityGroupArgs{EnterpriseSecurityGroupIds: g.enterprise})
	}
	return d.changeENI(ctx, id, "bindSg", token, sdk.UpdateEniSecurityGroupArgs{SecurityGroupIds: g.plain})
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, id, token string) error {
	return d.onENI(ctx, id, request{method: "DELETE", token: token})
}

// changeENI makes a request that changes an ENI. The action is the name of a query parameter
// without a value, as in "?attach".
func (d *Driver) changeENI(ctx context.Context, id, action, token string, body any) error {
	return d.onENI(ctx, id, request{method: "PUT", query: map[string]string{action: ""}, token: token, body: body})
}

// onENI makes a request about an ENI. The request's path is below the ENI's.
func (d *Driver) onENI(ctx context.Context, id string, r request) error {
	if !validID(id) {
		return &driver.Error{Kind: cloud.ErrNotFound, Why: cloud.NoSuchInterface, Detail: "no such ENI"}
	}
	r.path = eniPath + "/" + id + r.path
	return d.send(ctx, r)
}
