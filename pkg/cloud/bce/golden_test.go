package bce

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
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

// answerPublished serves the published answers.
func answerPublished(w http.ResponseWriter, r *http.Request) {
	text, ok := published[r.Method+" "+r.URL.Path]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case strings.Contains(text, `"code"`):
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write([]byte(text))
}

// reading is a driver whose API is the handler.
func reading(t *testing.T, h http.HandlerFunc) *Driver {
	t.Helper()
	withKeys(t)
	d, err := New(Options{Endpoint: serve(t, h), Instance: "i-FodWXDUY", VPC: "vpc-IyrqYIQ7", Zone: "zoneA", Kind: BCC})
	must(t, err)
	quicken(d)
	return d
}

// reader is the cloud over that.
func reader(t *testing.T, h http.HandlerFunc) *engine.Node {
	t.Helper()
	return engine.New(reading(t, h), quick(engine.Options{}))
}

func TestPublishedAnswersAreUnderstood(t *testing.T) {
	c := reader(t, answerPublished)
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
	if want := (eni.Limits{ENIs: 5, V4: 16, NoPrimary: true}); err != nil || l != want {
		t.Errorf("Limits = %+v, %v; want %+v", l, err, want)
	}
}

// An RDMA interface (ERI) is in the same list. It has a quota of its own (eriQuota of
// the instance) and no room for pods: it takes none of the ENIs' either.
func TestRDMAInterfacesTakeNoRoomOfENIs(t *testing.T) {
	const eri = `{"zoneName": "zoneA", "createdTime": "2019-01-30T10:44:52Z", "instanceId": "i-FodWXDUY", "eniId": "eni-rdma",
		"macAddress": "fa:26:00:0d:51:c8", "name": "eri", "privateIpSet": [{"primary": true, "privateIpAddress": "192.168.0.9"}],
		"status": "inuse", "subnetId": "sbn-IyWRnII7", "vpcId": "vpc-IyrqYIQ7", "networkInterfaceTrafficMode": "MODE"}, `
	for mode, want := range map[string]int{"highPerformance": 2, "HighPerformance": 2, "standard": 3, "": 3} {
		c := reader(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/eni" {
				answerPublished(w, r)
				return
			}
			text := strings.Replace(published["GET /v1/eni"], `"enis": [ `, `"enis": [ `+strings.Replace(eri, "MODE", mode, 1), 1)
			_, _ = w.Write([]byte(text))
		})
		list, err := c.Interfaces(t.Context())
		if err != nil || len(list) != want || len(c.Quarantined()) > 0 {
			t.Errorf("with one of mode %q: %d ENIs, want %d: %+v, %v, quarantined %v", mode, len(list), want, list, err, c.Quarantined())
		}
	}
}

func TestThePublishedErrorIsUnderstood(t *testing.T) {
	_, err := reading(t, answerPublished).byID(t.Context(), "eni-gone")
	want := "not found: NoSuchObject: account not exist (request c4abab14-ebc4-4eb0-85d2-03c4d51eed18)"
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

// What is believed of the cloud has a page, a line of public source, or is said to have
// none; a trait without a belief would be a guess that nobody is told.
func TestBeliefsHaveSources(t *testing.T) {
	var believer cloud.Believer = engine.New(reading(t, answerPublished), engine.Options{})
	beliefs, unsourced := believer.Beliefs(), 0
	if len(beliefs) < 40 {
		t.Fatalf("%d beliefs are read from DESIGN.md", len(beliefs))
	}
	seen := map[string]bool{}
	for _, b := range beliefs {
		page, err := url.Parse(b.Source)
		byPage := err == nil && page.Scheme == "https" && page.Host == "cloud.baidu.com" && page.Path != ""
		bySource := strings.HasPrefix(b.Source, "CCE: ") || strings.HasPrefix(b.Source, "SDK: ")
		if b.Source == "" {
			unsourced++
		} else if !byPage && !bySource {
			t.Errorf("%q has the source %q", b.What, b.Source)
		}
		if b.What == "" || seen[b.What] {
			t.Errorf("%q is believed twice, or nothing", b.What)
		}
		seen[b.What] = true
	}
	if unsourced == 0 || unsourced > len(beliefs)/2 {
		t.Errorf("%d of %d beliefs have no source", unsourced, len(beliefs))
	}
}

// An answer without the instance's memory leaves nothing to tell by how many addresses an
// ENI may have, unless the configuration does.
func TestAnInstanceWithoutMemoryHasTheLimitsOfTheConfiguration(t *testing.T) {
	d := reading(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/instance/i-FodWXDUY" {
			answerPublished(w, r)
			return
		}
		_, _ = w.Write([]byte(strings.Replace(published["GET /v2/instance/i-FodWXDUY"], `"memoryCapacityInGB": 16, `, "", 1)))
	})
	_, err := engine.New(d, engine.Options{}).Limits(t.Context())
	if !errors.Is(err, cloud.ErrUnavailable) || !strings.Contains(err.Error(), "cloud.maxIPsPerENI") {
		t.Errorf("Limits = %v", err)
	}
	l, err := engine.New(d, engine.Options{Limits: eni.Limits{V4: 12}}).Limits(t.Context())
	if err != nil || l.V4 != 12 || l.ENIs != 5 {
		t.Errorf("Limits by the configuration = %+v, %v", l, err)
	}
}
