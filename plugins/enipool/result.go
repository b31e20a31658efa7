package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
)

// printResult writes the result in the configuration's version, in one write.
// From version 1.0.0 on it writes the few members itself: the specification's
// types marshal themselves in several passes each, by reflection that is set up
// anew in each process, which is a twentieth of an ADD.
func printResult(w io.Writer, res *current.Result, cniVersion string) error {
	if cniVersion < "1.0.0" {
		return types.PrintResult(res, cniVersion)
	}
	o := &object{}
	o.text("cniVersion", cniVersion)
	list(o, "interfaces", res.Interfaces, func(o *object, i *current.Interface) {
		o.text("name", i.Name)
		o.textIf("mac", i.Mac)
		o.numberIf("mtu", i.Mtu)
		o.textIf("sandbox", i.Sandbox)
		o.textIf("socketPath", i.SocketPath)
		o.textIf("pciID", i.PciID)
	})
	list(o, "ips", res.IPs, func(o *object, ip *current.IPConfig) {
		o.pointer("interface", ip.Interface)
		o.text("address", ip.Address.String())
		o.textIf("gateway", address(ip.Gateway))
	})
	list(o, "routes", res.Routes, func(o *object, r *types.Route) {
		o.text("dst", r.Dst.String())
		o.textIf("gw", address(r.GW))
		o.numberIf("mtu", r.MTU)
		o.numberIf("advmss", r.AdvMSS)
		o.numberIf("priority", r.Priority)
		o.pointer("table", r.Table)
		o.pointer("scope", r.Scope)
	})
	if !res.DNS.IsEmpty() {
		dns, err := json.Marshal(res.DNS)
		if err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		o.member("dns", string(dns))
	}
	if _, err := w.Write([]byte(o.String() + "\n")); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// address is "" for no address.
func address(ip net.IP) string {
	if len(ip) == 0 {
		return ""
	}
	return ip.String()
}

// object is a JSON object in the making.
type object struct{ members []string }

// String returns the object.
func (o *object) String() string { return "{" + strings.Join(o.members, ",") + "}" }

func (o *object) member(key, value string) { o.members = append(o.members, `"`+key+`":`+value) }

func (o *object) text(key, value string) { o.member(key, quote(value)) }

func (o *object) textIf(key, value string) {
	if value != "" {
		o.text(key, value)
	}
}

func (o *object) numberIf(key string, n int) {
	if n != 0 {
		o.member(key, strconv.Itoa(n))
	}
}

func (o *object) pointer(key string, n *int) {
	if n != nil {
		o.member(key, strconv.Itoa(*n))
	}
}

// list adds a member that is a list of objects, none for an empty one.
func list[T any](o *object, key string, items []T, fill func(*object, T)) {
	if len(items) == 0 {
		return
	}
	texts := make([]string, len(items))
	for i, item := range items {
		var each object
		fill(&each, item)
		texts[i] = each.String()
	}
	o.member(key, "["+strings.Join(texts, ",")+"]")
}

// quote returns s as a JSON string.
func quote(s string) string {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			quoted, _ := json.Marshal(s) // a string always marshals
			return string(quoted)
		}
	}
	return `"` + s + `"`
}
