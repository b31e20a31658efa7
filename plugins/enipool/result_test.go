package main

import (
	"bytes"
	"encoding/json"
	"net"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
)

// What printResult prints is what the specification's own types print.
func TestAResultIsPrintedAsTheSpecificationHasIt(t *testing.T) {
	one, zero := 1, 0
	_, four, _ := net.ParseCIDR("10.0.0.11/32")
	_, six, _ := net.ParseCIDR("2001:db8::11/128")
	_, all, _ := net.ParseCIDR("0.0.0.0/0")
	full := &current.Result{
		Interfaces: []*current.Interface{{Name: "eni0", Mac: "02:00:00:00:00:01", Mtu: 9001},
			{Name: "eth0", Mac: "02:00:00:00:00:02", Mtu: 9001, Sandbox: "/run/netns/a \"b\"", SocketPath: "/s", PciID: "0000:00"}},
		IPs: []*current.IPConfig{{Interface: &one, Address: *four, Gateway: net.ParseIP("169.254.1.1")}, {Interface: &zero, Address: *six}, {Address: *six}},
		Routes: []*types.Route{{Dst: *all, GW: net.ParseIP("169.254.1.1")},
			{Dst: *all, MTU: 1400, AdvMSS: 1360, Priority: 10, Table: &one, Scope: &zero}},
		DNS: types.DNS{Nameservers: []string{"10.0.0.2"}, Domain: "x", Search: []string{"y"}, Options: []string{"z"}},
	}
	for name, res := range map[string]*current.Result{"full": full, "empty": {}, "without DNS": {IPs: full.IPs}} {
		for _, v := range []string{"1.0.0", "1.1.0"} {
			t.Run(name+" "+v, func(t *testing.T) {
				var ours bytes.Buffer
				if err := printResult(&ours, res, v); err != nil {
					t.Fatal(err)
				}
				converted, err := res.GetAsVersion(v)
				if err != nil {
					t.Fatal(err)
				}
				var theirs bytes.Buffer
				if err := converted.PrintTo(&theirs); err != nil {
					t.Fatal(err)
				}
				var got, want any
				if err := json.Unmarshal(ours.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(theirs.Bytes(), &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}
