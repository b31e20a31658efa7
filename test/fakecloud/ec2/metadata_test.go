package ec2_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

func sum(body string) string {
	s := sha256.Sum256([]byte(body))
	return hex.EncodeToString(s[:])
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

// metadata is the SDK's client of an instance's metadata.
func (w *world) metadata(i string) *imds.Client {
	server := httptest.NewServer(w.e.Metadata(i))
	w.Cleanup(server.Close)
	// net/http repeats a GET by itself where a connection that it kept breaks.
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return imds.New(imds.Options{Endpoint: server.URL, Retryer: aws.NopRetryer{}, HTTPClient: once})
}

// value reads one, "" with its status where there is none.
func (w *world) value(c *imds.Client, path string) (string, int) {
	w.Helper()
	out, err := c.GetMetadata(w.Context(), &imds.GetMetadataInput{Path: path})
	if e, ok := asResponse(err); ok {
		return "", e.HTTPStatusCode()
	}
	w.must(err)
	defer out.Content.Close()
	return read(w.T, out.Content), 200
}

func TestAnInstanceFindsItselfInItsMetadata(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{Role: "node"})
	c := w.metadata(instance)
	id, err := c.GetInstanceIdentityDocument(t.Context(), nil)
	w.must(err)
	if id.InstanceID != instance || id.Region != "us-east-1" || id.AvailabilityZone != "us-east-1a" || id.InstanceType != "m5.large" ||
		id.AccountID != "111122223333" || id.PrivateIP != "10.0.0.4" || time.Since(id.PendingTime) > time.Hour {
		t.Errorf("the identity is %+v", id.InstanceIdentityDocument)
	}
	region, err := c.GetRegion(t.Context(), nil)
	w.must(err)
	if region.Region != "us-east-1" {
		t.Errorf("the region is %s", region.Region)
	}
	mac, _ := w.value(c, "mac")
	for path, want := range map[string]string{
		"instance-id": instance, "instance-type": "m5.large", "placement/region": "us-east-1", "placement/availability-zone": "us-east-1a",
		"local-ipv4": "10.0.0.4", "iam/security-credentials/": "node", "iam/security-credentials": "node",
		"network/interfaces/macs/": mac + "/", "network/interfaces/macs": mac + "/",
	} {
		if got, _ := w.value(c, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if got, _ := w.value(c, ""); !strings.Contains(got, "instance-id\n") || !strings.Contains(got, "network/\n") {
		t.Errorf("the root is %q", got)
	}
	for _, path := range []string{"nothing", "network/interfaces/macs/" + mac + "/ipv4-prefix", "network/interfaces/macs/02:00:00:00:00:00/interface-id"} {
		if got, status := w.value(c, path); status != http.StatusNotFound {
			t.Errorf("%s is %q, status %d", path, got, status)
		}
	}
	if _, status := w.value(w.metadata("i-none"), "instance-id"); status != http.StatusNotFound {
		t.Errorf("of nobody there is metadata: status %d", status)
	}
}

func TestAttachedENIsAreInTheMetadataByTheirMACs(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	made, err := w.c.CreateNetworkInterface(t.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA), Groups: []string{group},
		Ipv4PrefixCount: aws.Int32(2), Ipv6AddressCount: aws.Int32(1)})
	w.must(err)
	id, mac := *made.NetworkInterface.NetworkInterfaceId, *made.NetworkInterface.MacAddress
	c := w.metadata(instance)
	if got, _ := w.value(c, "network/interfaces/macs/"); strings.Contains(got, mac) {
		t.Errorf("before it is attached there is %q", got)
	}
	w.attach(id, 2)
	_, err = w.c.AssignIpv6Addresses(t.Context(), &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: &id, Ipv6PrefixCount: aws.Int32(1)})
	w.must(err)
	_, err = w.c.AssignPrivateIpAddresses(t.Context(), &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, SecondaryPrivateIpAddressCount: aws.Int32(1)})
	w.must(err)
	if got, _ := w.value(c, "network/interfaces/macs/"); len(strings.Fields(got)) != 2 || !strings.Contains(got, mac+"/") {
		t.Errorf("the MACs are %q", got)
	}
	for key, want := range map[string]string{
		"interface-id": id, "device-number": "2", "network-card": "0", "mac": mac, "subnet-id": subnetA, "vpc-id": "vpc-0aaaaaaaaaaaaaaaa",
		"security-group-ids": group, "security-groups": "default", "owner-id": "111122223333", "local-ipv4s": "10.0.0.6\n10.0.0.7",
		"ipv4-prefix": "10.0.0.224/28\n10.0.0.208/28", "ipv6s": "2600:1f14:0:1::4", "ipv6-prefix": "2600:1f14:0:1:fffe::/80",
		"subnet-ipv4-cidr-block": "10.0.0.0/24", "subnet-ipv6-cidr-blocks": "2600:1f14:0:1::/64", "vpc-ipv4-cidr-block": "10.0.0.0/16",
		"vpc-ipv4-cidr-blocks": "10.0.0.0/16", "vpc-ipv6-cidr-blocks": "2600:1f14::/56",
	} {
		if got, status := w.value(c, "network/interfaces/macs/"+mac+"/"+key); got != want {
			t.Errorf("%s is %q (%d), want %q", key, got, status, want)
		}
	}
	if got, _ := w.value(w.metadata(other), "network/interfaces/macs/"); strings.Contains(got, mac) {
		t.Error("another instance shows it too")
	}
}

func TestWhatIsBeingAttachedIsNotInTheMetadata(t *testing.T) {
	w := newWorld(t, sim.Options{AttachTime: time.Hour}, ec2.Options{})
	made := w.create(0)
	w.attach(*made.NetworkInterfaceId, 1)
	if got, _ := w.value(w.metadata(instance), "network/interfaces/macs/"); strings.Contains(got, *made.MacAddress) {
		t.Errorf("while attaching there is %q", got)
	}
}

func TestMetadataCanBeStale(t *testing.T) {
	clock := &handClock{now: time.Now()}
	w := newWorld(t, sim.Options{Clock: clock}, ec2.Options{Keys: map[string]string{}, MetadataLag: time.Minute})
	clock.advance(time.Hour)
	c := w.metadata(instance)
	made := w.create(0)
	w.attach(*made.NetworkInterfaceId, 1)
	path := "network/interfaces/macs/" + *made.MacAddress + "/interface-id"
	if got, status := w.value(c, path); status != http.StatusNotFound {
		t.Errorf("at once it shows %q", got)
	}
	if got, _ := w.value(c, "instance-id"); got != instance {
		t.Errorf("the instance is %q", got)
	}
	clock.advance(time.Minute)
	if got, _ := w.value(c, path); got != *made.NetworkInterfaceId {
		t.Errorf("a minute later it shows %q", got)
	}
}

func TestMetadataNeedsASession(t *testing.T) {
	clock := &handClock{now: time.Now()}
	w := newWorld(t, sim.Options{Clock: clock}, ec2.Options{})
	server := httptest.NewServer(w.e.Metadata(instance))
	defer server.Close()
	ask := func(method, path string, header ...string) (int, string, http.Header) {
		r, err := http.NewRequest(method, server.URL+path, nil)
		w.must(err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		w.must(err)
		defer resp.Body.Close()
		return resp.StatusCode, read(t, resp.Body), resp.Header
	}
	const path, ttl, token = "/latest/meta-data/instance-id", "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"
	for name, tt := range map[string]struct {
		method, path string
		header       []string
		want         int
	}{
		"no token":           {"GET", path, nil, 401},
		"a token of nobody":  {"GET", path, []string{token, "x"}, 401},
		"no ttl":             {"PUT", "/latest/api/token", nil, 400},
		"a ttl of 0":         {"PUT", "/latest/api/token", []string{ttl, "0"}, 400},
		"a ttl of a week":    {"PUT", "/latest/api/token", []string{ttl, "604800"}, 400},
		"by way of a proxy":  {"PUT", "/latest/api/token", []string{ttl, "60", "X-Forwarded-For", "10.0.0.9"}, 403},
		"a GET for a token":  {"GET", "/latest/api/token", []string{ttl, "60"}, 401},
		"a POST":             {"POST", path, nil, 405},
		"what is not latest": {"GET", "/what", nil, 404},
	} {
		if got, body, _ := ask(tt.method, tt.path, tt.header...); got != tt.want {
			t.Errorf("%s: status %d %q, want %d", name, got, body, tt.want)
		}
	}
	status, session, h := ask("PUT", "/latest/api/token", ttl, "60")
	if status != 200 || h.Get(ttl) != "60" || session == "" {
		t.Fatalf("the session is %q, status %d, ttl %q", session, status, h.Get(ttl))
	}
	if got, body, _ := ask("GET", path, token, session); got != 200 || body != instance {
		t.Errorf("in the session: %d %q", got, body)
	}
	clock.advance(61 * time.Second)
	if got, _, _ := ask("GET", path, token, session); got != 401 {
		t.Errorf("after the session: %d", got)
	}
}

func TestMetadataFailsAsItIsTold(t *testing.T) {
	w := newWorld(t, ec2.Limited(sim.Options{}), ec2.Options{})
	c := w.metadata(instance)
	for reason, want := range map[sim.Reason]int{sim.Unavailable: 500, sim.Throttled: 429, sim.NoSuchResource: 404, sim.Forbidden: 403} {
		w.e.FailNext("Metadata", sim.Fault{Err: &sim.Error{Reason: reason}})
		if _, got := w.value(c, "instance-id"); got != want {
			t.Errorf("%s: status %d, want %d", reason, got, want)
		}
	}
	w.e.FailNext("Metadata", sim.Fault{Answer: sim.Lost})
	if _, err := c.GetMetadata(t.Context(), &imds.GetMetadataInput{Path: "mac"}); err == nil {
		t.Error("the answer was not lost")
	}
	for range 300 { // it counts in none of the API's buckets
		if _, status := w.value(c, "instance-id"); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
}
