package bce

import (
	"bytes"
	"context"
	"errors"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// machine is an instance with its primary ENI.
type machine struct {
	cpus, memory, quota int // memory in GiB; quota of ENIs besides its primary, 0 where the answer has none
	primary             driver.Interface
	state               cloud.State
}

// instanceAnswer is what is read of an instance, which has a hundred more fields.
type instanceAnswer struct {
	Instance struct {
		ID       string    `json:"id"`
		CPUs     int       `json:"cpuCount"`
		Memory   int       `json:"memoryCapacityInGB"`
		ENIQuota int       `json:"eniQuota"`
		Status   string    `json:"status"`
		NIC      nicAnswer `json:"nicInfo"`
	} `json:"instance"`
}

// nicAnswer is a primary ENI, as an instance's description and the service for bare metal
// write it.
type nicAnswer struct {
	ID          string    `json:"eniId"`
	MAC         string    `json:"macAddress"`
	VPC         string    `json:"vpcId"`
	Subnet      string    `json:"subnetId"`
	Created     string    `json:"createdTime"`
	Groups      []string  `json:"securityGroups"`
	Enterprises []string  `json:"enterpriseSecurityGroups"`
	IPs         []ownAddr `json:"ips"`
	IPv6s       []ownAddr `json:"ipv6s"`
	Bare        []struct {
		Addr    string `json:"privateIpAddress"`
		IPv6    string `json:"ipv6Address"`
		Primary bool   `json:"primary"`
	} `json:"privateIpSet"`
}

type ownAddr struct {
	Addr    string `json:"privateIp"`
	Primary truth  `json:"primary"`
}

// truth reads true and "true"; this API writes both.
type truth bool

// UnmarshalJSON reads a bool, or a bool as text.
func (t *truth) UnmarshalJSON(text []byte) error {
	*t = string(bytes.Trim(text, `"`)) == "true"
	return nil
}

// machine asks about an instance.
func (d *Driver) machine(ctx context.Context, s driver.Self) (m machine, err error) {
	instance := s.Instance
	if !validID(instance) {
		return machine{}, d.fail(ctx, cloud.ErrNotFound, "no instance has the ID "+instance)
	}
	var a instanceAnswer
	r := request{method: "GET", path: "/v2/instance/" + instance, query: map[string]string{"isDeploySet": "false"}, into: &a}
	if isBare(s) {
		a.Instance.ID = instance
		r = request{method: "GET", path: "/v1/vpcPort/" + instance, into: &a.Instance.NIC, bare: true}
	}
	if err := d.do(ctx, r); err != nil {
		return machine{}, err
	}
	i := a.Instance
	switch {
	case i.ID != instance:
		return machine{}, d.badAnswer(r, "it is about another instance")
	case i.NIC.ID == "":
		return machine{}, d.badAnswer(r, "the instance has no ENI of its own")
	}
	return machine{cpus: i.CPUs, memory: i.Memory, quota: i.ENIQuota, primary: i.NIC.decode(instance), state: stateOf(i.Status)}, nil
}

// decode reads an instance's primary ENI.
func (n nicAnswer) decode(instance string) driver.Interface {
	e := sdk.Eni{EniId: n.ID, MacAddress: n.MAC, VpcId: n.VPC, SubnetId: n.Subnet, CreatedTime: n.Created, InstanceId: instance,
		Status: inUse, SecurityGroupIds: n.Groups, EnterpriseSecurityGroupIds: n.Enterprises}
	for _, ip := range n.IPs {
		e.PrivateIpSet = append(e.PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr, Primary: bool(ip.Primary)})
	}
	for _, ip := range n.IPv6s {
		e.Ipv6PrivateIpSet = append(e.Ipv6PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr})
	}
	for _, ip := range n.Bare {
		e.PrivateIpSet = append(e.PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr, Primary: ip.Primary})
		if ip.IPv6 != "" {
			e.Ipv6PrivateIpSet = append(e.Ipv6PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.IPv6})
		}
	}
	i := decode(eniAnswer{Eni: e})
	i.Primary = true
	return i
}

// stateOf reads the status of a virtual machine; of bare metal none is asked for.
func stateOf(status string) cloud.State {
	switch status {
	case "Running":
		return cloud.Running
	case "Stopped":
		return cloud.Stopped
	}
	return cloud.Exists
}

// Alive implements driver.Driver. Only the cloud's own word counts that there is no such
// instance: a 404 without it may be a proxy's.
func (d *Driver) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	states := map[string]cloud.State{}
	var refused error
	for _, instance := range instances {
		s, err := d.known(ctx, instance)
		m := machine{}
		if err == nil {
			m, err = d.machine(ctx, s)
		}
		switch {
		case errors.Is(err, cloud.ErrForbidden):
			refused = err // of the others it may tell
		case err != nil && !errors.Is(err, cloud.ErrNotFound):
			return states, err
		case err != nil && driver.Reason(err) == driver.NoSuchInterface:
			states[instance] = cloud.Gone
		case err == nil:
			states[instance] = m.state
		}
	}
	return states, refused
}
