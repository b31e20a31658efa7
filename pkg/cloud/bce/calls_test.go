package bce

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim/api"
	endpoint "github.com/enipool/enipool/pkg/cloud/sim/api/bce"
	"github.com/enipool/enipool/pkg/eni"
)

// tap notes the calls that go by.
type tap struct {
	base http.RoundTripper
	mu   sync.Mutex
	seen []*http.Request
	size []int // addresses in each body
}

func listen(c *Client) *tap {
	t := &tap{base: c.base}
	c.base = t
	return t
}

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Count int      `json:"privateIpAddressCount"`
		List  []string `json:"privateIpAddresses"`
	}
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = json.Unmarshal(text, &body) // other bodies have none
		r.Body = io.NopCloser(&replay{text: text})
	}
	t.mu.Lock()
	t.seen, t.size = append(t.seen, r), append(t.size, body.Count+len(body.List))
	t.mu.Unlock()
	return t.base.RoundTrip(r)
}

type replay struct{ text []byte }

func (r *replay) Read(p []byte) (int, error) {
	n := copy(p, r.text)
	if r.text = r.text[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (t *tap) tokens() (list []string) {
	for _, r := range t.seen {
		if r.Method != http.MethodGet {
			list = append(list, r.URL.Query().Get("clientToken"))
		}
	}
	return list
}

func big(t *testing.T, o Options) (*site, *Client, *tap) {
	t.Helper()
	withKeys(t)
	s := newSite(t, setup{typ: "bcc.g5.c32m128"})
	o.Subnets = []string{"sbn-a", "sbn-b"}
	c, _ := s.open(t, "i-n1", o)
	return s, c, listen(c)
}

func TestEveryChangingCallHasAClientTokenOfItsOwn(t *testing.T) {
	_, c, calls := big(t, Options{})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 12})
	must(t, err)
	more, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 5)
	must(t, err)
	must(t, c.UnassignAddresses(t.Context(), i.ID, more))
	must(t, c.DeleteInterface(t.Context(), i.ID))
	tokens := calls.tokens()
	if len(tokens) != 8 { // create, attach, 10, 2, 5 and minus 5 addresses, detach, delete
		t.Errorf("%d changing calls: %v", len(tokens), tokens)
	}
	for _, token := range tokens {
		if token == "" || len(token) > 64 {
			t.Errorf("a call has the clientToken %q", token)
		}
	}
	slices.Sort(tokens)
	if len(slices.Compact(tokens)) != 8 {
		t.Errorf("clientTokens repeat: %v", tokens)
	}
}

func TestAddressesComeAndGoTenACall(t *testing.T) {
	_, c, calls := big(t, Options{})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	must(t, err)
	calls.size = nil
	got, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 27)
	if err != nil || len(got) != 27 {
		t.Fatalf("AssignAddresses(27) = %v, %v", got, err)
	}
	must(t, c.UnassignAddresses(t.Context(), i.ID, got))
	if want := []int{10, 10, 7, 10, 10, 7}; !slices.Equal(want, calls.size) {
		t.Errorf("batches of %v, want %v", calls.size, want)
	}
}

func TestTakingAddressesThatFailsInTheMiddleIsOfUnknownOutcome(t *testing.T) {
	s, c, _ := big(t, Options{})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 15})
	must(t, err)
	throttled := api.Fault{Err: &api.Error{Reason: api.Throttled}}
	s.Endpoint.FailNext("BatchDeletePrivateIp", throttled)
	if err := c.UnassignAddresses(t.Context(), i.ID, i.Addresses); !errors.Is(err, cloud.ErrThrottled) {
		t.Errorf("the first batch fails: %v", err)
	}
	s.Endpoint.FailNext("BatchDeletePrivateIp", api.Fault{}, throttled)
	if err := c.UnassignAddresses(t.Context(), i.ID, i.Addresses); !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("the second batch fails: %v", err)
	}
	must(t, c.UnassignAddresses(t.Context(), i.ID, i.Addresses)) // ten of them are gone
	if list, err := c.Interfaces(t.Context()); err != nil || len(list[1].Addresses) != 0 {
		t.Errorf("left are %+v, %v", list, err)
	}
}

func TestAChangingCallIsMadeOnce(t *testing.T) {
	s, c, _ := big(t, Options{})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	must(t, err)
	for _, fault := range []api.Fault{{Answer: api.Lost}, {Err: &api.Error{Reason: api.Unavailable}, After: true},
		{Err: &api.Error{Reason: api.Unavailable, Status: http.StatusBadGateway}}, {Err: &api.Error{Reason: api.Throttled}}} {
		before := s.Calls()["BatchAddPrivateIp"]
		s.Endpoint.FailNext("BatchAddPrivateIp", fault)
		if _, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1); err == nil {
			t.Errorf("fault %+v is no error", fault)
		}
		if calls := s.Calls()["BatchAddPrivateIp"] - before; calls != 1 {
			t.Errorf("fault %+v: %d calls", fault, calls)
		}
	}
}

func TestACreationAfterARestartFindsWhatWasMade(t *testing.T) {
	s, _, _ := big(t, Options{})
	wish := cloud.Create{Token: "restarted", Subnet: "sbn-a", V4: 14}
	var first cloud.Interface
	for n, action := range []string{"CreateEni", "AttachEniInstance", "BatchAddPrivateIp", ""} {
		c, _ := s.open(t, "i-n1", Options{Subnets: []string{"sbn-a"}}) // a process of its own
		if action != "" {
			s.Endpoint.FailNext(action, api.Fault{Answer: api.Lost})
		}
		i, err := c.CreateInterface(t.Context(), wish)
		if (action == "") != (err == nil) {
			t.Fatalf("attempt %d: %+v, %v", n, i, err)
		}
		first = i
	}
	c, _ := s.open(t, "i-n1", Options{})
	list, err := c.Interfaces(t.Context())
	must(t, err)
	if len(list) != 2 || list[1].ID != first.ID || len(list[1].Addresses) != 14 || list[1].Index != 1 {
		t.Errorf("after four attempts: %+v", list)
	}
}

func TestATokenWhoseENIWasUndoneMakesANewOneAfterARestart(t *testing.T) {
	s, c, _ := big(t, Options{})
	wish := cloud.Create{Token: "undone", Subnet: "sbn-a", V4: 3}
	must(t, s.LeaveFree("sbn-a", 1)) // for the primary alone
	if _, err := c.CreateInterface(t.Context(), wish); !errors.Is(err, cloud.ErrSubnetFull) {
		t.Fatalf("in a full subnet: %v", err)
	}
	must(t, s.LeaveFree("sbn-a", 100))
	again, _ := s.open(t, "i-n1", Options{Subnets: []string{"sbn-a"}})
	again.settle = 20 * time.Millisecond
	i, err := again.CreateInterface(t.Context(), wish)
	if err != nil || len(i.Addresses) != 3 {
		t.Errorf("the same token again: %+v, %v", i, err)
	}
}

func TestATokenWhoseENIWasUndoneMakesANewOneAtOnce(t *testing.T) {
	s, c, _ := big(t, Options{})
	wish := cloud.Create{Token: "undone", Subnet: "sbn-a", V4: 3}
	must(t, s.LeaveFree("sbn-a", 1))
	if _, err := c.CreateInterface(t.Context(), wish); !errors.Is(err, cloud.ErrSubnetFull) {
		t.Fatalf("in a full subnet: %v", err)
	}
	must(t, s.LeaveFree("sbn-a", 100))
	_, err := c.CreateInterface(t.Context(), wish)
	if calls := s.Calls()["CreateEni"]; err != nil || calls != 2 {
		t.Errorf("%v after %d creations", err, calls)
	}
}

func TestAFailureAfterTheFirstAddressesIsNoSuccess(t *testing.T) {
	for _, fault := range []api.Fault{{Answer: api.Lost}, {Err: &api.Error{Reason: api.Throttled}}} {
		s, c, _ := big(t, Options{})
		wish := cloud.Create{Token: "t", Subnet: "sbn-a", V4: 12}
		s.Endpoint.FailNext("BatchAddPrivateIp", api.Fault{}, fault)
		if _, err := c.CreateInterface(t.Context(), wish); !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("the second batch fails: %v", err)
		}
		i, err := c.CreateInterface(t.Context(), wish)
		if err != nil || len(i.Addresses) != 12 {
			t.Errorf("the same again: %+v, %v", i, err)
		}
		must(t, s.Check())
	}
}

func TestACreationWaitsUntilTheENIIsAttached(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{account: api.Options{AttachTime: 100 * time.Millisecond}})
	c, _ := s.open(t, "i-n1", Options{})
	c.settle = 10 * time.Millisecond
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	if err != nil || i.Index != 1 {
		t.Errorf("CreateInterface = %+v, %v", i, err)
	}
	c.o.Wait = time.Millisecond
	if _, err = c.CreateInterface(t.Context(), cloud.Create{Token: "u", Subnet: "sbn-a", V4: 1}); !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("an ENI that is attaching for too long: %v", err)
	}
}

func TestAnIndexStaysWhenAnOlderENIGoes(t *testing.T) {
	_, c, _ := big(t, Options{})
	var made []cloud.Interface
	for _, token := range []string{"a", "b", "c"} {
		i, err := c.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "sbn-a", V4: 1})
		must(t, err)
		made = append(made, i)
	}
	must(t, c.DeleteInterface(t.Context(), made[0].ID))
	list, err := c.Interfaces(t.Context())
	must(t, err)
	if len(list) != 3 || list[1].Index != 2 || list[2].Index != 3 {
		t.Errorf("without the first one: %+v", list)
	}
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "d", Subnet: "sbn-a", V4: 1})
	if err != nil || i.Index != 1 {
		t.Errorf("the next one is %+v, %v", i, err)
	}
}

func TestWhatTheInstanceMayCarry(t *testing.T) {
	withKeys(t)
	type want struct {
		typ    string
		limits eni.Limits
	}
	for name, tt := range map[string]struct {
		endpoint endpoint.Options
		want     []want
	}{
		"by its quota": {endpoint.Options{}, []want{
			{"bcc.g5.c4m8", eni.Limits{ENIs: 5, V4: 8}}, {"bcc.g5.c16m64", eni.Limits{ENIs: 9, V4: 30}},
			{"ebc.l5", eni.Limits{ENIs: 9, V4: 40}}, {"ebc.l5.own", eni.Limits{ENIs: 1, V4: 40}}, {"bbc.s3", eni.Limits{ENIs: 1, V4: 40}}}},
		"by its processors where there is none": {endpoint.Options{NoQuota: true}, []want{
			{"bcc.g5.c1m1", eni.Limits{ENIs: 2, V4: 2}}, {"bcc.g5.c2m8", eni.Limits{ENIs: 3, V4: 8}},
			{"bcc.g5.c32m128", eni.Limits{ENIs: 9, V4: 40}}, {"ebc.l5", eni.Limits{ENIs: 1, V4: 40}}}},
		"by its description where the quota is forbidden": {endpoint.Options{Denied: []string{"GetEniQuota"}}, []want{
			{"bcc.g5.c4m16", eni.Limits{ENIs: 5, V4: 16}}}},
	} {
		for _, w := range tt.want {
			t.Run(name+" "+w.typ, func(t *testing.T) {
				tt.endpoint.Keys = map[string]string{accessKey: secretKey}
				s := newSite(t, setup{typ: w.typ, endpoint: tt.endpoint})
				c, _ := s.open(t, "i-n1", Options{})
				if got, err := c.Limits(t.Context()); err != nil || got != w.limits {
					t.Errorf("Limits = %+v, %v; want %+v", got, err, w.limits)
				}
				c, _ = s.open(t, "i-n1", Options{Limits: eni.Limits{ENIs: 2, V4: 5}})
				if got, err := c.Limits(t.Context()); err != nil || got != (eni.Limits{ENIs: 2, V4: 5}) {
					t.Errorf("with limits in the options: %+v, %v", got, err)
				}
			})
		}
	}
}

func TestAddressesByMemoryAreThoseOfTheNote(t *testing.T) {
	for memory, want := range map[int]int{0: 0, 1: 2, 2: 8, 8: 8, 9: 16, 32: 16, 33: 30, 64: 30, 65: 40, 512: 40} {
		if got := addressesByMemory(memory); got != want {
			t.Errorf("%d GiB: %d addresses, want %d", memory, got, want)
		}
	}
}

func TestBareMetalHasAddressesOnItsOwnENI(t *testing.T) {
	withKeys(t)
	for _, typ := range []string{"bbc.s3", "ebc.l5.own"} {
		s := newSite(t, setup{typ: typ})
		c, _ := s.open(t, "i-n1", Options{})
		mine := own(t, c)
		got, err := c.AssignAddresses(t.Context(), mine.ID, eni.IPv4, 45)
		if !errors.Is(err, cloud.ErrLimit) || len(got) != 39 {
			t.Errorf("%s: %d addresses, %v", typ, len(got), err)
		}
		must(t, c.UnassignAddresses(t.Context(), mine.ID, got[:15]))
		if left := own(t, c).Addresses; len(left) != 24 {
			t.Errorf("%s: %d addresses are left", typ, len(left))
		}
		_, err = c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
		if !errors.Is(err, cloud.ErrLimit) {
			t.Errorf("%s: a second ENI: %v", typ, err)
		}
		must(t, s.Check())
	}
}

func TestTheInstancesOwnENIGetsNoIPv6(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{v6: true})
	c, _ := s.open(t, "i-n1", Options{IPv6: true})
	if got, err := c.AssignAddresses(t.Context(), own(t, c).ID, eni.IPv6, 1); !errors.Is(err, cloud.ErrForbidden) || len(got) > 0 {
		t.Errorf("AssignAddresses = %v, %v", got, err)
	}
}

func TestSubnetsAreChosenByIDByTagOrAsTheInstancesOwn(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	must(t, s.AddSubnet(api.Subnet{Subnet: simSubnet("sbn-c", "10.0.8.0/24"), Zone: "cn-bj-a", Tags: map[string]string{"pods": "yes"}}))
	for _, tt := range []struct {
		o    Options
		want []string
	}{
		{Options{}, []string{"sbn-a"}},
		{Options{Subnets: []string{"sbn-b"}}, []string{"sbn-b"}},
		{Options{SubnetTags: map[string]string{"pods": "yes"}}, []string{"sbn-a", "sbn-b"}}, // the third is of another zone
		{Options{SubnetTags: map[string]string{"pods": "no"}}, nil},
		{Options{Subnets: []string{"sbn-c"}}, nil},
	} {
		c, _ := s.open(t, "i-n1", tt.o)
		list, err := c.Subnets(t.Context())
		must(t, err)
		var got []string
		for _, n := range list {
			if n.New {
				got = append(got, n.ID)
			}
		}
		if !slices.Equal(tt.want, got) {
			t.Errorf("%+v: new ENIs may lie in %v, want %v", tt.o, got, tt.want)
		}
	}
}

func TestSweepDeletesTheClustersOldENIsThatAreAttachedNowhere(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	open := func(instance, cluster string) *Client {
		c, _ := s.open(t, instance, Options{Cluster: cluster})
		return c
	}
	c, others := open("i-n2", "blue"), open("i-n1", "green")
	var made []cloud.Interface
	for n, from := range []*Client{open("i-n1", "blue"), open("i-n1", "blue"), others} {
		i, err := from.CreateInterface(t.Context(), cloud.Create{Token: string(rune('a' + n)), Subnet: "sbn-a", V4: 1})
		must(t, err)
		made = append(made, i)
	}
	must(t, s.Detach(made[1].ID))
	must(t, s.Detach(made[2].ID))
	if gone, err := c.Sweep(t.Context(), time.Hour); err != nil || len(gone) > 0 {
		t.Errorf("young ENIs: %v, %v", gone, err)
	}
	gone, err := c.Sweep(t.Context(), -time.Hour)
	if err != nil || !slices.Equal(gone, []string{made[1].ID}) {
		t.Errorf("Sweep = %v, %v; want %s", gone, err, made[1].ID)
	}
	must(t, s.Terminate("i-n1"))
	gone, err = c.Sweep(t.Context(), -time.Hour)
	if err != nil || !slices.Equal(gone, []string{made[0].ID}) {
		t.Errorf("without its instance: %v, %v; want %s", gone, err, made[0].ID)
	}
}
