package bce

import (
	"net/http"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// crossBody is addresses of other subnets of an ENI.
type crossBody struct {
	V6    bool        `json:"isIpv6"`
	IPs   []addressIn `json:"privateIps"`
	Count int         `json:"privateIpAddressCount"`
}

// addressIn is an address with its subnet.
type addressIn struct {
	Address string `json:"privateIpAddress"`
	Subnet  string `json:"subnetId"`
}

// requestOfOthers is what addresses of another subnet are to the account. A call has one address: nobody knows how many the cloud takes.
func requestOfOthers(e *Endpoint, list []addressIn, count int, f eni.Family) (sim.AddressRequest, error) {
	switch {
	case !e.o.CrossSubnet:
		return sim.AddressRequest{}, refuse("NotInWhiteList", http.StatusForbidden, "The account is not in the white list of this function.")
	case len(list) != 1 || count > 0 || list[0].Subnet == "":
		return sim.AddressRequest{}, invalid("one address a call, with its subnet")
	}
	w, err := requestOf([]string{list[0].Address}, 0, f)
	w.Subnet = list[0].Subnet
	return w, err
}

func batchAddCrossSubnet(e *Endpoint, r *request) (effect, error) {
	var b crossBody
	if err := r.read(&b); err != nil {
		return nil, err
	}
	w, err := requestOfOthers(e, b.IPs, b.Count, batchBody{V6: b.V6}.family())
	return assigns(r.id, w, func(got sim.Got) any {
		return struct {
			Addresses []string `json:"privateIpAddresses"`
		}{texts(got)}
	}), err
}

// ownCrossBody is addresses of other subnets of the primary ENI of bare metal.
type ownCrossBody struct {
	Instance string `json:"instanceId"`
	ENIs     []struct {
		ID    string `json:"eniId"`
		Count int    `json:"secondaryPrivateIpAddressCount"`
		IPs   []struct {
			Address string `json:"privateIp"`
			Subnet  string `json:"subnetId"`
		} `json:"ipAndSubnets"`
	} `json:"singleEniAndSubentIps"`
}

// instanceBatchAddIPCrossSubnet refuses virtual machines, as instanceBatchAddIP does.
func instanceBatchAddIPCrossSubnet(e *Endpoint, r *request) (effect, error) {
	var b ownCrossBody
	if err := r.read(&b); err != nil {
		return nil, err
	}
	if len(b.ENIs) != 1 {
		return nil, invalid("one ENI a call")
	}
	var list []addressIn
	for _, ip := range b.ENIs[0].IPs {
		list = append(list, addressIn{ip.Address, ip.Subnet})
	}
	w, err := requestOfOthers(e, list, b.ENIs[0].Count, eni.IPv4)
	return func(tx *sim.Tx) (any, error) {
		i, err := bareOwn(tx, b.Instance)
		switch {
		case err != nil:
			return nil, err
		case i.ID != b.ENIs[0].ID:
			return nil, refuse("NoSuchObject", http.StatusNotFound, "the ENI is not the instance's")
		}
		return assignsOwn(tx, i, w)
	}, err
}
