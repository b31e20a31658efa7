package bce

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// batch is the most addresses of a call.
const batch = 10

// parseIP reads an address of the family; "" is any, the zero Addr.
func parseIP(text string, f eni.Family) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil || eni.FamilyOf(a) != f {
		return netip.Addr{}, invalid("%q is no %s address", text, f)
	}
	return a, nil
}

// batchBody is addresses of an ENI.
type batchBody struct {
	V6        bool     `json:"isIpv6"`
	Addresses []string `json:"privateIpAddresses"`
	Count     int      `json:"privateIpAddressCount"`
}

func (b batchBody) family() eni.Family {
	if b.V6 {
		return eni.IPv6
	}
	return eni.IPv4
}

// requestOf is what the addresses are to the account.
func requestOf(texts []string, count int, f eni.Family) (sim.AddressRequest, error) {
	var w sim.AddressRequest
	if len(texts)+count < 1 || len(texts)+count > batch || count < 0 {
		return w, invalid("1 to %d addresses a call", batch)
	}
	for _, text := range texts {
		a, err := parseIP(text, f)
		switch {
		case err != nil:
			return w, err
		case !a.IsValid():
			return w, invalid("an address is empty")
		case f == eni.IPv6:
			w.V6 = append(w.V6, a)
		default:
			w.V4 = append(w.V4, a)
		}
	}
	if f == eni.IPv6 {
		w.CountV6 = count
	} else {
		w.CountV4 = count
	}
	return w, nil
}

// texts are the addresses that came of a request.
func texts(g sim.Got) []string {
	list := []string{}
	for _, a := range append(g.V4, g.V6...) {
		list = append(list, a.String())
	}
	return list
}

func batchAddPrivateIP(_ *Endpoint, r *request) (effect, error) {
	var b batchBody
	if err := r.read(&b); err != nil {
		return nil, err
	}
	w, err := requestOf(b.Addresses, b.Count, b.family())
	return assigns(r.id, w, func(got sim.Got) any {
		return struct {
			Addresses []string `json:"privateIpAddresses"`
		}{texts(got)}
	}), err
}

// assigns is the effect that assigns addresses to the ENI, with the answer about those that it got.
func assigns(id string, asked sim.AddressRequest, answer func(sim.Got) any) effect {
	return func(tx *sim.Tx) (any, error) {
		i, err := find(tx, id)
		if err != nil {
			return nil, err
		}
		got, err := tx.Assign(i.ID, asked)
		if err != nil {
			return nil, err
		}
		return answer(got), nil
	}
}

func addPrivateIP(_ *Endpoint, r *request) (effect, error) {
	var b struct {
		V6      bool   `json:"isIpv6"`
		Address string `json:"privateIpAddress"`
	}
	if err := r.read(&b); err != nil {
		return nil, err
	}
	named, count := []string{b.Address}, 0
	if b.Address == "" {
		named, count = nil, 1
	}
	w, err := requestOf(named, count, batchBody{V6: b.V6}.family())
	return assigns(r.id, w, func(got sim.Got) any {
		return struct {
			Address string `json:"privateIpAddress"`
		}{texts(got)[0]}
	}), err
}

// gone are addresses to take.
func gone(list []string) (sim.Got, error) {
	var g sim.Got
	if len(list) < 1 || len(list) > batch {
		return g, invalid("1 to %d addresses a call", batch)
	}
	for _, text := range list {
		a, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			return g, invalid("%q is no address", text)
		case a.Is6():
			g.V6 = append(g.V6, a)
		default:
			g.V4 = append(g.V4, a)
		}
	}
	return g, nil
}

func batchDeletePrivateIP(_ *Endpoint, r *request) (effect, error) {
	var b batchBody
	if err := r.read(&b); err != nil {
		return nil, err
	}
	g, err := gone(b.Addresses)
	return onENI(r, func(tx *sim.Tx, i sim.Interface) error { return tx.Unassign(i.ID, g) }), err
}

func deletePrivateIP(_ *Endpoint, r *request) (effect, error) {
	g, err := gone([]string{r.PathValue("address")})
	return onENI(r, func(tx *sim.Tx, i sim.Interface) error { return tx.Unassign(i.ID, g) }), err
}
