package bce

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// published are answers of the API's reference, by method and path: of
// cloud.baidu.com/doc/VPC the pages of ENIs (Okknfjt6o, 6kknfn5m8, 9kw4xi713,
// Hkknfl4q3), of a subnet (Sjwvyu89a) and of errors (sjwvyuhe7). Where a page shows
// an answer in part, the rest is as its table of fields has it.
var published = map[string]string{
	"GET /v1/subnet/sbn-IyWRnII7": `{
	  "subnet": {
	    "name": "系统预定义子网", "subnetId": "sbn-IyWRnII7", "zoneName": "cn-bj-a", "cidr": "192.168.0.0/20",
	    "ipv6Cidr": "2400:da00:e003:0:1eb:2400::/88", "vpcId": "vpc-IyrqYIQ7", "subnetType": "BCC",
	    "availableIp": 4090, "availableUnreservedIp": 4060, "description": "this is a subnet",
	    "createdTime": "2020-11-19T12:46:01Z" } }`,
	"GET /v1/eni": `{
	  "enis": [ {
	    "zoneName": "zoneA", "createdTime": "2019-01-30T10:44:52Z", "description": "", "instanceId": "i-FodWXDUY",
	    "eniId": "eni-w2d4kgc3x0y1", "macAddress": "fa:26:00:0d:51:C7", "name": "eni",
	    "privateIpSet": [
	      {"publicIpAddress": "", "primary": true, "privateIpAddress": "192.168.0.4"},
	      {"publicIpAddress": "", "primary": false, "privateIpAddress": "192.168.0.8"}],
	    "securityGroupIds": ["g-SY5smEG9"], "status": "inuse", "subnetId": "sbn-IyWRnII7", "vpcId": "vpc-IyrqYIQ7",
	    "somethingNew": {"of": ["which", 1, "knows", null]} } ],
	  "isTruncated": false, "maxKeys": 1000, "marker": "eni-w2d4kgc3x0y1" }`,
	"POST /v1/eni/eni-w2d4kgc3x0y1/privateIp/batchAdd": `{
	  "privateIpAddresses": [ "192.168.1.1", "192.168.1.2", "192.168.1.3" ] }`,
	"GET /v2/instance/i-FodWXDUY": `{
	  "instance": { "id": "i-FodWXDUY", "name": "instance-a", "cpuCount": 4, "memoryCapacityInGB": 16, "eniQuota": 4, "eniNum": "1",
	    "zoneName": "cn-bj-a", "vpcId": "vpc-IyrqYIQ7", "subnetId": "sbn-IyWRnII7",
	    "nicInfo": { "eniId": "eni-u5uk0gbsb9nn", "macAddress": "fa:16:3e:c0:e4:3d", "vpcId": "vpc-IyrqYIQ7",
	      "subnetId": "sbn-IyWRnII7", "status": "inuse", "createdTime": "2022-08-12 18:53:07.0",
	      "ips": [ {"eip": "null", "primary": "true", "privateIp": "192.168.0.3"} ] } } }`,
	"GET /v1/eni/eni-gone": `{
	  "code": "NoSuchObject", "message": "account not exist", "requestId": "c4abab14-ebc4-4eb0-85d2-03c4d51eed18" }`,
}

// page serves the published answers.
func page(w http.ResponseWriter, r *http.Request) {
	text, ok := published[r.Method+" "+r.URL.Path]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case strings.Contains(text, `"code"`):
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write([]byte(text))
}

func reader(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	withKeys(t)
	c, err := New(Options{Endpoint: serve(t, h), Instance: "i-FodWXDUY", VPC: "vpc-IyrqYIQ7", Zone: "zoneA", Kind: BCC})
	must(t, err)
	quicken(c)
	return c
}

func TestPublishedAnswersAreUnderstood(t *testing.T) {
	c := reader(t, page)
	got, err := c.Interfaces(t.Context())
	must(t, err)
	gateway := netip.MustParseAddr("192.168.0.1")
	want := []cloud.Interface{
		{ID: "eni-u5uk0gbsb9nn", Index: 0, MAC: "fa:16:3e:c0:e4:3d", Subnet: "sbn-IyWRnII7",
			V4: eni.Net{Primary: netip.MustParsePrefix("192.168.0.3/20"), Gateway: gateway}, Created: date("2022-08-12T18:53:07Z")},
		{ID: "eni-w2d4kgc3x0y1", Index: eni.MaxIndex, MAC: "fa:26:00:0d:51:c7", Subnet: "sbn-IyWRnII7",
			V4:        eni.Net{Primary: netip.MustParsePrefix("192.168.0.4/20"), Gateway: gateway},
			Addresses: []netip.Addr{netip.MustParseAddr("192.168.0.8")}, Created: date("2019-01-30T10:44:52Z")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	added, err := c.AssignAddresses(t.Context(), "eni-w2d4kgc3x0y1", eni.IPv4, 3)
	if err != nil || len(added) != 3 || added[2] != netip.MustParseAddr("192.168.1.3") {
		t.Errorf("AssignAddresses = %v, %v", added, err)
	}
	l, err := c.Limits(t.Context())
	if want := (eni.Limits{ENIs: 5, V4: 16}); err != nil || l != want {
		t.Errorf("Limits = %+v, %v; want %+v", l, err, want)
	}
}

func TestThePublishedErrorIsUnderstood(t *testing.T) {
	c := reader(t, page)
	_, err := c.detail(context.Background(), "DeleteInterface", "eni-gone")
	plain(&err)
	want := "DeleteInterface eni-gone: not found: NoSuchObject: account not exist (request c4abab14-ebc4-4eb0-85d2-03c4d51eed18)"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestTimesOfAllFormsAreRead(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2020-11-19T12:46:01Z":      date("2020-11-19T12:46:01Z"),
		"2020-11-19T20:46:01+08:00": date("2020-11-19T12:46:01Z"),
		"2022-08-12 18:53:07.0":     date("2022-08-12T18:53:07Z"),
		"2022-08-12 18:53:07":       date("2022-08-12T18:53:07Z"),
		"yesterday":                 {},
		"":                          {},
	} {
		if got := parseTime(text); !got.Equal(want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func date(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}
