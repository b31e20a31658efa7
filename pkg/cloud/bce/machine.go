package bce

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/baidubce/bce-sdk-go/bce"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
)

// machine is the instance with its own ENI.
type machine struct {
	self
	cpus, memory, quota int // memory in GiB; quota of ENIs besides its own, 0 where the answer has none
	own                 sdk.Eni
	groups              groups // of its own ENI
}

// instanceAnswer is what is read of an instance. The SDK's type has a hundred more
// fields, any of which a new form of answer could make unreadable.
type instanceAnswer struct {
	Instance struct {
		ID       string `json:"id"`
		CPUs     int    `json:"cpuCount"`
		Memory   int    `json:"memoryCapacityInGB"`
		ENIQuota int    `json:"eniQuota"`
		NIC      struct {
			ID          string    `json:"eniId"`
			MAC         string    `json:"macAddress"`
			VPC         string    `json:"vpcId"`
			Subnet      string    `json:"subnetId"`
			Created     string    `json:"createdTime"`
			IPs         []ownAddr `json:"ips"`
			IPv6s       []ownAddr `json:"ipv6s"`
			Groups      []string  `json:"securityGroups"`
			Enterprises []string  `json:"enterpriseSecurityGroups"`
		} `json:"nicInfo"`
	} `json:"instance"`
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

// bareAnswer is the own ENI of bare metal. The SDK's call for it prints to standard
// error.
type bareAnswer struct {
	ID      string `json:"eniId"`
	MAC     string `json:"macAddress"`
	VPC     string `json:"vpcId"`
	Subnet  string `json:"subnetId"`
	Created string `json:"createdTime"`
	IPs     []struct {
		Addr    string `json:"privateIpAddress"`
		IPv6    string `json:"ipv6Address"`
		Primary bool   `json:"primary"`
	} `json:"privateIpSet"`
}

// machine asks the cloud about the instance.
func (c *Client) machine(ctx context.Context, op string) (machine, error) {
	me, err := c.whoami(ctx, op)
	if err != nil {
		return machine{}, err
	}
	m := machine{self: me}
	if me.kind == BBC {
		err = c.bareMachine(ctx, op, &m)
	} else {
		err = c.virtualMachine(ctx, op, &m)
	}
	if err != nil {
		return machine{}, err
	}
	if m.own.EniId == "" {
		return machine{}, c.badAnswer(call{op: op, object: me.instance}, "the instance has no ENI of its own")
	}
	m.own.Status, m.own.InstanceId = inUse, me.instance
	c.mu.Lock()
	c.ownENI = m.own.EniId
	c.known[m.own.EniId] = record{subnet: m.own.SubnetId, seen: time.Now()}
	c.mu.Unlock()
	return m, nil
}

func (c *Client) virtualMachine(ctx context.Context, op string, m *machine) error {
	var a instanceAnswer
	k := call{op: op, object: m.instance}
	if err := c.do(ctx, k, func(b *bce.BceClient) error {
		return bce.NewRequestBuilder(b).WithMethod("GET").WithURL("/v2/instance/"+m.instance).
			WithQueryParam("isDeploySet", "false").WithResult(&a).Do()
	}); err != nil {
		return err
	}
	i := a.Instance
	if i.ID != m.instance {
		return c.badAnswer(k, "it is about another instance")
	}
	m.cpus, m.memory, m.quota = i.CPUs, i.Memory, i.ENIQuota
	m.own = sdk.Eni{EniId: i.NIC.ID, MacAddress: i.NIC.MAC, VpcId: i.NIC.VPC, SubnetId: i.NIC.Subnet, CreatedTime: i.NIC.Created}
	for _, ip := range i.NIC.IPs {
		m.own.PrivateIpSet = append(m.own.PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr, Primary: bool(ip.Primary)})
	}
	for _, ip := range i.NIC.IPv6s {
		m.own.Ipv6PrivateIpSet = append(m.own.Ipv6PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr})
	}
	m.groups = groups{plain: i.NIC.Groups, enterprise: i.NIC.Enterprises}
	if len(m.groups.enterprise) > 0 {
		m.groups.plain = nil
	}
	return nil
}

func (c *Client) bareMachine(ctx context.Context, op string, m *machine) error {
	var a bareAnswer
	k := call{op: op, object: m.instance, bare: true}
	if err := c.do(ctx, k, func(b *bce.BceClient) error {
		return bce.NewRequestBuilder(b).WithMethod("GET").WithURL("/v1/vpcPort/" + m.instance).WithResult(&a).Do()
	}); err != nil {
		return err
	}
	m.own = sdk.Eni{EniId: a.ID, MacAddress: a.MAC, VpcId: a.VPC, SubnetId: a.Subnet, CreatedTime: a.Created}
	for _, ip := range a.IPs {
		m.own.PrivateIpSet = append(m.own.PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.Addr, Primary: ip.Primary})
		if ip.IPv6 != "" {
			m.own.Ipv6PrivateIpSet = append(m.own.Ipv6PrivateIpSet, sdk.PrivateIp{PrivateIpAddress: ip.IPv6})
		}
	}
	return nil
}

// isOwn tells whether the ENI is the instance's own.
func (c *Client) isOwn(ctx context.Context, op, id string) (bool, error) {
	c.mu.Lock()
	own := c.ownENI
	c.mu.Unlock()
	if own == "" {
		m, err := c.machine(ctx, op)
		if err != nil {
			return false, err
		}
		own = m.own.EniId
	}
	return id == own, nil
}

// validID tells whether an ID can be part of a path of the API. What can't be does
// not exist.
func validID(id string) bool {
	return id != "" && wordFormat.MatchString(id) && !strings.Contains(id, "/")
}
