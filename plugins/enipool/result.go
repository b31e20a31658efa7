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
// again in each process, which takes a twentieth of an ADD.
func printResult(out io.Writer, res *current.Result, cniVersion string) error {
	if cniVersion < "1.0.0" {
		return types.PrintResult(res, cniVersion)
	}
	members := &object{}
	members.addText("cniVersion", cniVersion)
	addList(members, "interfaces", res.Interfaces, func(members *object, i *current.Interface) {
		members.addText("name", i.Name)
		members.addTextIf("mac", i.Mac)
		members.addNumberIf("mtu", i.Mtu)
		members.addTextIf("sandbox", i.Sandbox)
		members.addTextIf("socketPath", i.SocketPath)
		members.addTextIf("pciID", i.PciID)
	})
	addList(members, "ips", res.IPs, func(members *object, ip *current.IPConfig) {
		members.addNumberAt("interface", ip.Interface)
		members.addText("address", ip.Address.String())
		members.addTextIf("gateway", textOfIP(ip.Gateway))
	})
	addList(members, "routes", res.Routes, func(members *object, r *types.Route) {
		members.addText("dst", r.Dst.String())
		members.addTextIf("gw", textOfIP(r.GW))
		members.addNumberIf("mtu", r.MTU)
		members.addNumberIf("advmss", r.AdvMSS)
		members.addNumberIf("priority", r.Priority)
		members.addNumberAt("table", r.Table)
		members.addNumberAt("scope", r.Scope)
	})
	if !res.DNS.IsEmpty() {
		dns, err := json.Marshal(res.DNS)
		if err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		members.addMember("dns", string(dns))
	}
	if _, err := out.Write([]byte(members.String() + "\n")); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// textOfIP is "" for no address.
func textOfIP(ip net.IP) string {
	if len(ip) == 0 {
		return ""
	}
	return ip.String()
}

// object is a JSON object in the making.
type object struct{ members []string }

// String returns the object.
func (o *object) String() string { return "{" + strings.Join(o.members, ",") + "}" }

func (o *object) addMember(key, value string) { o.members = append(o.members, `"`+key+`":`+value) }

func (o *object) addText(key, value string) { o.addMember(key, quoteJSON(value)) }

func (o *object) addTextIf(key, value string) {
	if value != "" {
		o.addText(key, value)
	}
}

func (o *object) addNumberIf(key string, n int) {
	if n != 0 {
		o.addMember(key, strconv.Itoa(n))
	}
}

func (o *object) addNumberAt(key string, n *int) {
	if n != nil {
		o.addMember(key, strconv.Itoa(*n))
	}
}

// addList adds to the object a member that is a list of objects, none for an empty one.
func addList[T any](members *object, key string, items []T, fill func(*object, T)) {
	if len(items) == 0 {
		return
	}
	texts := make([]string, len(items))
	for i, item := range items {
		var each object
		fill(&each, item)
		texts[i] = each.String()
	}
	members.addMember(key, "["+strings.Join(texts, ",")+"]")
}

// quoteJSON returns s as a JSON string.
func quoteJSON(s string) string {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			quoted, _ := json.Marshal(s) // a string always marshals
			return string(quoted)
		}
	}
	return `"` + s + `"`
}
