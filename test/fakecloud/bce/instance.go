package bce

import (
	"net/http"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// instanceBody is an instance in answers, of a hundred fields those that matter to
// ENIs.
type instanceBody struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Spec     string  `json:"spec"`
	Status   string  `json:"status"`
	Created  string  `json:"createTime"`
	Address  string  `json:"internalIp"`
	CPUs     int     `json:"cpuCount"`
	Memory   int     `json:"memoryCapacityInGB"`
	Zone     string  `json:"zoneName"`
	Subnet   string  `json:"subnetId"`
	VPC      string  `json:"vpcId"`
	ENIQuota int     `json:"eniQuota"`
	ENIs     string  `json:"eniNum"`
	NIC      nicBody `json:"nicInfo"`
}

// nicBody is an instance's own ENI.
type nicBody struct {
	ID          string    `json:"eniId"`
	MAC         string    `json:"macAddress"`
	VPC         string    `json:"vpcId"`
	Subnet      string    `json:"subnetId"`
	SubnetType  string    `json:"subnetType"`
	Zone        string    `json:"az"`
	Type        string    `json:"type"`
	Status      string    `json:"status"`
	Created     string    `json:"createdTime"`
	V4          []ownBody `json:"ips"`
	V6          []ownBody `json:"ipv6s"`
	Groups      []string  `json:"securityGroups"`
	Enterprises []string  `json:"enterpriseSecurityGroups"`
}

type ownBody struct {
	Address string `json:"privateIp"`
	Primary string `json:"primary"` // a bool as text
}

// own returns an instance with its own ENI.
func own(tx *sim.Tx, id string) (sim.Instance, sim.Interface, error) {
	m, err := tx.Instance(id)
	if err != nil || m.Terminated {
		return m, sim.Interface{}, &sim.Error{Reason: sim.NoSuchInstance, Object: id}
	}
	for _, i := range tx.Interfaces() {
		if i.At(id) && isOwn(i) {
			return m, i, nil
		}
	}
	return m, sim.Interface{}, &sim.Error{Reason: sim.Unavailable, Object: id, Detail: "its ENI is not known yet"}
}

func instanceDetail(e *Endpoint, r *request) (effect, error) {
	return func(tx *sim.Tx) (any, error) {
		m, t, i, err := ofKind(tx, r, r.id)
		if err != nil {
			return nil, err
		}
		b := instanceBody{ID: m.ID, Name: m.Node, Spec: t.Name, Status: "Running", Created: stamp(m.Launched), Address: i.Primary.String(),
			CPUs: t.CPUs, Memory: t.Memory >> 10, Zone: i.Zone, Subnet: i.Subnet, VPC: tx.VPC().ID, ENIQuota: t.ENIs - 1, ENIs: "1"}
		if m.Stopped {
			b.Status = "Stopped"
		}
		if e.o.NoQuota {
			b.ENIQuota = 0
		}
		b.NIC = nicBody{ID: i.ID, MAC: i.MAC, VPC: b.VPC, Subnet: i.Subnet, SubnetType: "BCC", Zone: i.Zone, Type: "primary",
			Status: "inuse", Created: stamp(i.Created), V6: []ownBody{}}
		b.NIC.V4 = append(b.NIC.V4, ownBody{i.Primary.String(), "true"})
		for _, a := range i.V4 {
			b.NIC.V4 = append(b.NIC.V4, ownBody{a.String(), "false"})
		}
		for _, a := range i.V6 {
			b.NIC.V6 = append(b.NIC.V6, ownBody{a.String(), "false"})
		}
		b.NIC.Groups, b.NIC.Enterprises = split(i.Groups)
		return struct {
			Instance instanceBody `json:"instance"`
		}{b}, nil
	}, nil
}

// bareBody is the own ENI of bare metal in answers.
type bareBody struct {
	ID       string   `json:"eniId"`
	Name     string   `json:"name"`
	Zone     string   `json:"zoneName"`
	Instance string   `json:"instanceId"`
	MAC      string   `json:"macAddress"`
	VPC      string   `json:"vpcId"`
	Subnet   string   `json:"subnetId"`
	Status   string   `json:"status"`
	Created  string   `json:"createdTime"`
	V4       []bareIP `json:"privateIpSet"`
}

type bareIP struct {
	Primary bool   `json:"primary"`
	Address string `json:"privateIpAddress"`
	V6      string `json:"ipv6Address"`
	Subnet  string `json:"subnetId"`
}

func bareENI(_ *Endpoint, r *request) (effect, error) {
	return func(tx *sim.Tx) (any, error) {
		m, _, i, err := ofKind(tx, r, r.id)
		if err != nil {
			return nil, err
		}
		b := bareBody{ID: i.ID, Zone: i.Zone, Instance: m.ID, MAC: i.MAC, VPC: tx.VPC().ID, Subnet: i.Subnet, Status: "inuse",
			Created: stamp(i.Created)}
		for n, a := range i.Addresses() {
			if a.Is4() {
				b.V4 = append(b.V4, bareIP{Primary: n == 0, Address: a.String(), Subnet: i.Subnet})
			}
		}
		return b, nil
	}, nil
}

// instanceIPs are addresses of an instance's own ENI.
type instanceIPs struct {
	Instance string   `json:"instanceId"`
	IPs      []string `json:"privateIps"`
	Count    int      `json:"secondaryPrivateIpAddressCount"`
	V6       bool     `json:"allocateMultiIpv6Addr"`
}

// onBare tells whether the path is the service's for bare metal.
func onBare(r *request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

// ofKind returns the instance, its type and its own ENI, for the service of its kind.
func ofKind(tx *sim.Tx, r *request, id string) (sim.Instance, sim.Type, sim.Interface, error) {
	m, i, err := own(tx, id)
	if err != nil {
		return m, sim.Type{}, i, err
	}
	t, err := tx.Type(m.Type)
	if err == nil && (kindOf(t) == "bbc") != onBare(r) {
		err = refuse("NoSuchObject", http.StatusNotFound, "the instance is of another service")
	}
	return m, t, i, err
}

// instanceBatchAddIP refuses virtual machines. What the cloud adds there takes effect
// when the instance is rebooted (intl.cloud.baidu.com/en/doc/BCC/s/ulxedqb8e-intl-en), and
// no instance is rebooted here: whoever adds one for a pod that runs has done it wrong.
func instanceBatchAddIP(_ *Endpoint, r *request) (effect, error) {
	var b instanceIPs
	if err := r.read(&b); err != nil {
		return nil, err
	}
	f := eni.IPv4
	if b.V6 {
		f = eni.IPv6
	}
	w, err := requestOf(b.IPs, b.Count, f)
	return func(tx *sim.Tx) (any, error) {
		if _, _, _, err := ofKind(tx, r, b.Instance); err != nil {
			return nil, err
		}
		i, err := bareOwn(tx, b.Instance)
		if err != nil {
			return nil, err
		}
		return assignsOwn(tx, i, w)
	}, err
}

// bareOwn returns the own ENI of bare metal.
func bareOwn(tx *sim.Tx, instance string) (sim.Interface, error) {
	m, i, err := own(tx, instance)
	if err != nil {
		return i, err
	}
	if t, err := tx.Type(m.Type); err != nil {
		return i, err
	} else if kindOf(t) == "bcc" {
		return i, refuse("OperationDenied", http.StatusForbidden, "it takes effect when the virtual machine is rebooted")
	}
	return i, nil
}

// assignsOwn assigns addresses to an own ENI and returns the answer.
func assignsOwn(tx *sim.Tx, i sim.Interface, asked sim.AddressRequest) (any, error) {
	got, err := tx.Assign(i.ID, asked)
	if err != nil {
		return nil, err
	}
	return struct {
		IPs []string `json:"privateIps"`
	}{texts(got)}, nil
}

func instanceBatchDelIP(_ *Endpoint, r *request) (effect, error) {
	var b instanceIPs
	if err := r.read(&b); err != nil {
		return nil, err
	}
	g, err := gone(b.IPs)
	return func(tx *sim.Tx) (any, error) {
		_, _, i, err := ofKind(tx, r, b.Instance)
		if err != nil {
			return nil, err
		}
		return nothing{}, tx.Unassign(i.ID, g)
	}, err
}
