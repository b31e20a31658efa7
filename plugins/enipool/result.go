package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
)

// result is a result of version 1.0.0 or later as plain values. The types of the
// specification marshal themselves in several passes each, which is a twentieth
// of an ADD.
type result struct {
	CNIVersion string               `json:"cniVersion"`
	Interfaces []*current.Interface `json:"interfaces,omitempty"`
	IPs        []resultIP           `json:"ips,omitempty"`
	Routes     []resultRoute        `json:"routes,omitempty"`
	DNS        *types.DNS           `json:"dns,omitempty"`
}

type resultIP struct {
	Address   string `json:"address"`
	Gateway   string `json:"gateway,omitempty"`
	Interface *int   `json:"interface,omitempty"`
}

type resultRoute struct {
	Dst      string `json:"dst"`
	GW       string `json:"gw,omitempty"`
	MTU      int    `json:"mtu,omitempty"`
	AdvMSS   int    `json:"advmss,omitempty"`
	Priority int    `json:"priority,omitempty"`
	Table    *int   `json:"table,omitempty"`
	Scope    *int   `json:"scope,omitempty"`
}

// printResult writes the result in the configuration's version, in one write.
func printResult(w io.Writer, res *current.Result, cniVersion string) error {
	if cniVersion < "1.0.0" {
		return types.PrintResult(res, cniVersion)
	}
	r := result{CNIVersion: cniVersion, Interfaces: res.Interfaces}
	for _, ip := range res.IPs {
		r.IPs = append(r.IPs, resultIP{ip.Address.String(), text(ip.Gateway), ip.Interface})
	}
	for _, t := range res.Routes {
		r.Routes = append(r.Routes, resultRoute{t.Dst.String(), text(t.GW), t.MTU, t.AdvMSS, t.Priority, t.Table, t.Scope})
	}
	if !res.DNS.IsEmpty() {
		r.DNS = &res.DNS
	}
	out, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	if _, err := w.Write(append(out, '\n')); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// text is "" for no address.
func text(ip net.IP) string {
	if len(ip) == 0 {
		return ""
	}
	return ip.String()
}
