package bce

import (
	"bytes"
	"context"
	"errors"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// instancePath and portPath are where instances are; bare metal has the latter.
const (
	instancePath = "/v2/instance/"
	portPath     = "/v1/vpcPort/"
)

// instanceInfo is an instance with its primary ENI.
type instanceInfo struct {
	cpus, memory, quota int // memory in GiB; quota of ENIs besides its primary, 0 where the answer has none
	primary             driver.Interface
	state               cloud.State
}

// instanceAnswer has the fields of an instance's description that are read, out of about a hundred.
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

// nicAnswer is a primary ENI, as both an instance's description and the service for bare metal
// write it. Only the latter fills Bare.
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

// describeInstance describes an instance. Of bare metal there is only the primary ENI.
func (d *Driver) describeInstance(ctx context.Context, s driver.Self) (m instanceInfo, err error) {
	instance := s.Instance
	if !validID(instance) {
		return instanceInfo{}, d.ownError(ctx, cloud.ErrNotFound, "no instance has the ID "+instance)
	}
	var a instanceAnswer
	req := request{method: "GET", path: instancePath + instance, query: map[string]string{"isDeploySet": "false"}, into: &a}
	if isBare(s) {
		a.Instance.ID = instance
		req = request{method: "GET", path: portPath + instance, into: &a.Instance.NIC, bare: true}
	}
	if err := d.send(ctx, req); err != nil {
		return instanceInfo{}, err
	}
	i := a.Instance
	switch {
	// Believed, it would give this node the ENI of another.
	case i.ID != instance:
		return instanceInfo{}, d.badAnswer(req, "it is about another instance")
	case i.NIC.ID == "":
		return instanceInfo{}, d.badAnswer(req, "the instance has no ENI of its own")
	}
	return instanceInfo{cpus: i.CPUs, memory: i.Memory, quota: i.ENIQuota, primary: i.NIC.decodePrimary(instance), state: stateOf(i.Status)}, nil
}

// decodePrimary reads an instance's primary ENI.
func (n nicAnswer) decodePrimary(instance string) driver.Interface {
	written := sdk.Eni{EniId: n.ID, MacAddress: n.MAC, VpcId: n.VPC, SubnetId: n.Subnet, CreatedTime: n.Created, InstanceId: instance,
		Status: inUse, SecurityGroupIds: n.Groups, EnterpriseSecurityGroupIds: n.Enterprises}
	for _, ip := range n.IPs {
		written.PrivateIpSet = append(written.PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr, Primary: bool(ip.Primary)})
	}
	for _, ip := range n.IPv6s {
		written.Ipv6PrivateIpSet = append(written.Ipv6PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr})
	}
	for _, ip := range n.Bare {
		written.PrivateIpSet = append(written.PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr, Primary: ip.Primary})
		if ip.IPv6 != "" {
			written.Ipv6PrivateIpSet = append(written.Ipv6PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.IPv6})
		}
	}
	i := decodeInterface(eniAnswer{Eni: written})
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

// Alive implements driver.Driver. An instance is gone only if the API's code says so: a 404
// without a code may be a proxy's.
func (d *Driver) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	states := map[string]cloud.State{}
	var refused error
	for _, instance := range instances {
		s, err := d.selfOf(ctx, instance)
		info := instanceInfo{}
		if err == nil {
			info, err = d.describeInstance(ctx, s)
		}
		switch {
		case errors.Is(err, cloud.ErrForbidden):
			refused = err // of the others it may tell
		case err != nil && !errors.Is(err, cloud.ErrNotFound):
			return states, err
		case err != nil && driver.Reason(err) == cloud.NoSuchInstance:
			states[instance] = cloud.Gone
		case err == nil:
			states[instance] = info.state
		}
	}
	return states, refused
}
