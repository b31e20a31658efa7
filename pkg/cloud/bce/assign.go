package bce

import (
	"context"
	"fmt"
	"slices"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
	"github.com/enipool/enipool/pkg/eni"
)

// ownBody is the body of requests for addresses of an instance's primary ENI. Virtual machines
// and bare metal have the same requests at different paths.
type ownBody struct {
	Instance string   `json:"instanceId"`
	IPs      []string `json:"privateIps"`
	Count    int      `json:"secondaryPrivateIpAddressCount,omitempty"`
	V6       bool     `json:"allocateMultiIpv6Addr,omitempty"`
}

// Assign implements driver.Driver.
func (d *Driver) Assign(ctx context.Context, asked driver.Assign) (driver.Assigned, error) {
	var answer struct {
		OfENI []string `json:"privateIpAddresses"`
		OfOwn []string `json:"privateIps"`
	}
	v6 := asked.Family == eni.IPv6
	named := wire.Texts(asked.Addresses)
	req := request{method: "POST", path: "/privateIp/batchAdd", token: asked.Token, into: &answer,
		body: sdk.EniBatchPrivateIpArgs{IsIpv6: v6, PrivateIpAddresses: named, PrivateIpAddressCount: asked.Count.Singles}}
	own := request{path: "/batchAddIp", token: asked.Token, into: &answer, body: ownBody{Instance: asked.On.Instance, IPs: named, Count: asked.Count.Singles, V6: v6}}
	if asked.Subnet != "" {
		req.path, req.body = "/privateIp/batchAddCrossSubnet", object{"subnetId": asked.Subnet, "isIpv6": v6, "privateIps": crossed(asked, "privateIpAddress")}
		own.path, own.body = ownCrossPath, object{"instanceId": asked.On.Instance, "singleEniAndSubentIps": []object{
			{"eniId": asked.On.ID, "subnetId": asked.Subnet, "ipAndSubnets": crossed(asked, "privateIp")}}}
	}
	var err error
	if asked.On.Primary {
		err = d.onOwn(ctx, asked.On.Instance, own)
	} else {
		err = d.onENI(ctx, asked.On.ID, req)
	}
	var got driver.Assigned
	if err != nil {
		return got, err
	}
	for _, text := range append(answer.OfENI, answer.OfOwn...) {
		addr, err := wire.Addr(text, asked.Family)
		// The addresses are on the ENI by now, so this is badAnswer, whose kind is ErrUnknown: the
		// engine then describes the ENI, and loses none that could not be read.
		if err != nil || slices.Contains(got.Addresses, addr) {
			return driver.Assigned{}, d.badAnswer(req, fmt.Sprintf("the %s address %q was added, or twice", asked.Family, text))
		}
		got.Addresses = append(got.Addresses, addr)
	}
	return got, nil
}

// ownCrossPath is the end of the path for addresses of other subnets of a primary ENI. There is a version 1 of it alone.
const ownCrossPath = "/batchAddIpCrossSubnet"

// object is the body of a request whose type the SDK has only in a package of its own.
type object map[string]any

// crossed returns addresses of another subnet as bodies have them, by the name that an address has there.
func crossed(asked driver.Assign, name string) (list []object) {
	for _, a := range asked.Addresses {
		list = append(list, object{name: a.String(), "subnetId": asked.Subnet})
	}
	return list
}

// Unassign implements driver.Driver. A request with an address that the ENI lacks changes
// nothing: cloud.baidu.com/doc/BCC/s/xlftgzljf, which is about primary ENIs.
func (d *Driver) Unassign(ctx context.Context, u driver.Unassign) error {
	texts := wire.Texts(u.Addresses)
	if u.On.Primary {
		return d.onOwn(ctx, u.On.Instance, request{path: "/batchDelIp", token: u.Token, body: ownBody{Instance: u.On.Instance, IPs: texts}})
	}
	return d.onENI(ctx, u.On.ID, request{method: "POST", path: "/privateIp/batchDel", token: u.Token,
		body: sdk.EniBatchPrivateIpArgs{IsIpv6: u.Family == eni.IPv6, PrivateIpAddresses: texts}})
}

// onOwn makes a request about an instance's primary ENI.
func (d *Driver) onOwn(ctx context.Context, instance string, r request) error {
	s, err := d.selfOf(ctx, instance)
	if err != nil {
		return err
	}
	version := "/v2"
	if r.bare = isBare(s); r.bare || r.path == ownCrossPath {
		version = "/v1"
	}
	r.method, r.path = "PUT", version+"/instance"+r.path
	return d.send(ctx, r)
}
