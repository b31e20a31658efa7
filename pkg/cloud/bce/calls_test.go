package bce

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	endpoint "github.com/enipool/enipool/test/fakecloud/bce"
)

// tap notes the calls that go by.
type tap struct {
	base http.RoundTripper
	mu   sync.Mutex
	seen []*http.Request
	size []int // addresses in each body
}

// listen taps the wire.
func listen(w *faulty) *tap {
	t := &tap{base: w.base}
	w.base = t
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

func big(t *testing.T, o engine.Options) (*site, *engine.Node, *tap) {
	t.Helper()
	withKeys(t)
	s := newSite(t, setup{typ: "bcc.g5.c32m128"})
	o.Subnets = []string{"sbn-a", "sbn-b"}
	c, w := s.open(t, "i-n1", o)
	return s, c, listen(w)
}

func TestEveryChangingCallHasAClientTokenOfItsOwn(t *testing.T) {
	_, c, calls := big(t, engine.Options{})
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
	_, c, calls := big(t, engine.Options{})
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
	s, c, _ := big(t, engine.Options{})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 15})
	must(t, err)
	throttled := sim.Fault{Err: &sim.Error{Reason: sim.Throttled}}
	s.Endpoint.FailNext("BatchDeletePrivateIp", throttled)
	if err := c.UnassignAddresses(t.Context(), i.ID, i.Addresses); !errors.Is(err, cloud.ErrThrottled) {
		t.Errorf("the first batch fails: %v", err)
	}
	s.Endpoint.FailNext("BatchDeletePrivateIp", sim.Fault{}, throttled)
	if err := c.UnassignAddresses(t.Context(), i.ID, i.Addresses); !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("the second batch fails: %v", err)
	}
	must(t, c.UnassignAddresses(t.Context(), i.ID, i.Addresses)) // ten of them are gone
	if list, err := c.Interfaces(t.Context()); err != nil || len(list[1].Addresses) != 0 {
		t.Errorf("left are %+v, %v", list, err)
	}
}

func TestAChangingCallIsMadeOnce(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	must(t, err)
	for _, fault := range []sim.Fault{{Answer: sim.Lost}, {Err: &sim.Error{Reason: sim.Unavailable}, After: true},
		{Err: &sim.Error{Reason: sim.Unavailable, Status: http.StatusBadGateway}}, {Err: &sim.Error{Reason: sim.Throttled}}} {
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
	s, _, _ := big(t, engine.Options{})
	request := cloud.Create{Token: "restarted", Subnet: "sbn-a", V4: 14}
	var first cloud.Interface
	for n, action := range []string{"CreateEni", "AttachEniInstance", "BatchAddPrivateIp", ""} {
		c, _ := s.open(t, "i-n1", engine.Options{Subnets: []string{"sbn-a"}}) // a process of its own
		if action != "" {
			s.Endpoint.FailNext(action, sim.Fault{Answer: sim.Lost})
		}
		i, err := c.CreateInterface(t.Context(), request)
		if (action == "") != (err == nil) {
			t.Fatalf("attempt %d: %+v, %v", n, i, err)
		}
		first = i
	}
	c, _ := s.open(t, "i-n1", engine.Options{})
	list, err := c.Interfaces(t.Context())
	must(t, err)
	if len(list) != 2 || list[1].ID != first.ID || len(list[1].Addresses) != 14 || list[1].Index != 1 {
		t.Errorf("after four attempts: %+v", list)
	}
}

func TestATokenWhoseENIWasUndoneMakesANewOneAfterARestart(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	request := cloud.Create{Token: "undone", Subnet: "sbn-a", V4: 3}
	must(t, s.LeaveFree("sbn-a", 1)) // for the primary alone
	if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrSubnetFull) {
		t.Fatalf("in a full subnet: %v", err)
	}
	must(t, s.LeaveFree("sbn-a", 100))
	clock := &cloudtest.Clock{}
	again, _ := s.open(t, "i-n1", engine.Options{Subnets: []string{"sbn-a"}, Times: driver.Times{Settle: 20 * time.Millisecond}, Clock: clock})
	if _, err := again.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
		t.Fatalf("it may be a describe that lags: %v", err)
	}
	clock.Set(3 * time.Minute)
	i, err := again.CreateInterface(t.Context(), request)
	if err != nil || len(i.Addresses) != 3 {
		t.Errorf("the same token again: %+v, %v", i, err)
	}
}

func TestATokenWhoseENIWasUndoneMakesANewOneAtOnce(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	request := cloud.Create{Token: "undone", Subnet: "sbn-a", V4: 3}
	must(t, s.LeaveFree("sbn-a", 1))
	if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrSubnetFull) {
		t.Fatalf("in a full subnet: %v", err)
	}
	must(t, s.LeaveFree("sbn-a", 100))
	_, err := c.CreateInterface(t.Context(), request)
	if calls := s.Calls()["CreateEni"]; err != nil || calls != 2 {
		t.Errorf("%v after %d creations", err, calls)
	}
}

func TestAFailureAfterTheFirstAddressesIsNoSuccess(t *testing.T) {
	for _, fault := range []sim.Fault{{Answer: sim.Lost}, {Err: &sim.Error{Reason: sim.Throttled}}} {
		s, c, _ := big(t, engine.Options{})
		request := cloud.Create{Token: "t", Subnet: "sbn-a", V4: 12}
		s.Endpoint.FailNext("BatchAddPrivateIp", sim.Fault{}, fault)
		if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("the second batch fails: %v", err)
		}
		i, err := c.CreateInterface(t.Context(), request)
		if err != nil || len(i.Addresses) != 12 {
			t.Errorf("the same again: %+v, %v", i, err)
		}
		must(t, s.Check())
	}
}

func TestACreationWaitsUntilTheENIIsAttached(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{account: sim.Options{AttachTime: 100 * time.Millisecond}})
	c, _ := s.open(t, "i-n1", engine.Options{Times: driver.Times{Settle: 10 * time.Millisecond}})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	if err != nil || i.Index != 1 {
		t.Errorf("CreateInterface = %+v, %v", i, err)
	}
	s.SetTimes(0, time.Hour, 0)
	c, _ = s.open(t, "i-n1", engine.Options{Times: driver.Times{Wait: time.Millisecond}})
	if _, err = c.CreateInterface(t.Context(), cloud.Create{Token: "u", Subnet: "sbn-a", V4: 1}); !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("an ENI that is attaching for too long: %v", err)
	}
}

func TestAnIndexStaysWhenAnOlderENIGoes(t *testing.T) {
	_, c, _ := big(t, engine.Options{})
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
			{"bcc.g5.c4m8", eni.Limits{ENIs: 5, V4: 8, NoPrimary: true}}, {"bcc.g5.c16m64", eni.Limits{ENIs: 9, V4: 30, NoPrimary: true}},
			{"ebc.l5", eni.Limits{ENIs: 9, V4: 40, NoPrimary: true}}, {"ebc.l5.own", eni.Limits{ENIs: 1, V4: 40}}, {"bbc.s3", eni.Limits{ENIs: 1, V4: 40}}}},
		"by its processors where there is none": {endpoint.Options{NoQuota: true}, []want{
			{"bcc.g5.c1m1", eni.Limits{ENIs: 2, V4: 2, NoPrimary: true}}, {"bcc.g5.c2m8", eni.Limits{ENIs: 3, V4: 8, NoPrimary: true}},
			{"bcc.g5.c32m128", eni.Limits{ENIs: 9, V4: 40, NoPrimary: true}}, {"ebc.l5", eni.Limits{ENIs: 1, V4: 40}}}},
		"by its description where the quota is forbidden": {endpoint.Options{Denied: []string{"GetEniQuota"}}, []want{
			{"bcc.g5.c4m16", eni.Limits{ENIs: 5, V4: 16, NoPrimary: true}}}},
	} {
		for _, w := range tt.want {
			t.Run(name+" "+w.typ, func(t *testing.T) {
				tt.endpoint.Keys = map[string]string{accessKey: secretKey}
				s := newSite(t, setup{typ: w.typ, endpoint: tt.endpoint})
				c, _ := s.open(t, "i-n1", engine.Options{})
				if got, err := c.Limits(t.Context()); err != nil || got != w.limits {
					t.Errorf("Limits = %+v, %v; want %+v", got, err, w.limits)
				}
				c, _ = s.open(t, "i-n1", engine.Options{Limits: eni.Limits{ENIs: 2, V4: 5}})
				if got, err := c.Limits(t.Context()); err != nil || got != (eni.Limits{ENIs: 2, V4: 5, NoPrimary: !strings.HasPrefix(w.typ, "bbc")}) {
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
		c, _ := s.open(t, "i-n1", engine.Options{})
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

// Who sees many nodes asks about each at the service of its kind, wherever it runs itself.
func TestAnotherInstanceIsAskedAboutAtTheServiceOfItsKind(t *testing.T) {
	withKeys(t)
	for _, typ := range []string{"bcc.g5.c4m8", "bbc.s3", "ebc.l5"} {
		s := newSite(t, setup{typ: typ})
		kind, _, _ := strings.Cut(typ, ".")
		n2, _ := s.open(t, "i-n2", engine.Options{})
		want := []string{own(t, n2).ID}
		if kind != "bbc" {
			i, err := n2.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
			must(t, err)
			want = append(want, i.ID)
		}
		for _, by := range []Kind{BCC, BBC} {
			d, err := New(Options{Endpoint: s.url, Instance: "i-elsewhere", VPC: "vpc-elsewhere", Zone: "zoneD", Kind: by})
			must(t, err)
			quicken(d)
			list, err := d.Interfaces(t.Context(), driver.Filter{Attached: driver.Self{Instance: "i-n2", Type: kind, VPC: s.vpc()}})
			var got []string
			for _, i := range list {
				got = append(got, i.ID)
			}
			if err != nil || !slices.Equal(got, want) || !list[0].Primary || list[0].Instance != "i-n2" {
				t.Errorf("%s asked about by %s has %+v, %v; want %v", typ, by, list, err, want)
			}
		}
	}
}

// The service for ENIs does not know an instance's own one: a process that has not looked
// yet finds it all the same.
func TestTheOwnENIOfBareMetalIsFoundByItsID(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{typ: "bbc.s3"})
	c, _ := s.open(t, "i-n1", engine.Options{})
	mine := own(t, c)
	fresh, _ := s.open(t, "i-n1", engine.Options{})
	got, err := fresh.AssignAddresses(t.Context(), mine.ID, eni.IPv4, 2)
	if err != nil || len(got) != 2 {
		t.Fatalf("AssignAddresses = %v, %v", got, err)
	}
	fresh, _ = s.open(t, "i-n1", engine.Options{})
	must(t, fresh.UnassignAddresses(t.Context(), mine.ID, got))
	if left := own(t, c).Addresses; len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	s.Endpoint.FailNext("InstanceBatchAddIp", sim.Fault{Answer: sim.Lost})
	got, err = c.AssignAddresses(t.Context(), mine.ID, eni.IPv4, 1)
	if has := own(t, c).Addresses; !errors.Is(err, cloud.ErrUnknown) || !slices.Equal(got, has) {
		t.Errorf("after a lost answer %v, %v; the ENI has %v", got, err, has)
	}
}

func TestTheInstancesOwnENIGetsNoIPv6(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{v6: true, typ: "ebc.l5.own"})
	c, _ := s.open(t, "i-n1", engine.Options{IPv6: true})
	if got, err := c.AssignAddresses(t.Context(), own(t, c).ID, eni.IPv6, 1); !errors.Is(err, cloud.ErrForbidden) || len(got) > 0 {
		t.Errorf("AssignAddresses = %v, %v", got, err)
	}
}

func TestSubnetsAreChosenByIDByTagOrAsTheInstancesOwn(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	third := simSubnet("sbn-c", "10.0.8.0/24")
	third.Zone, third.Tags = "cn-bj-a", map[string]string{"pods": "yes"}
	must(t, s.AddSubnet(third))
	for _, tt := range []struct {
		o    engine.Options
		want []string
	}{
		{engine.Options{}, []string{"sbn-a"}},
		{engine.Options{Subnets: []string{"sbn-b"}}, []string{"sbn-b"}},
		{engine.Options{SubnetTags: map[string]string{"pods": "yes"}}, []string{"sbn-a", "sbn-b"}}, // the third is of another zone
		{engine.Options{SubnetTags: map[string]string{"pods": "no"}}, nil},
		{engine.Options{Subnets: []string{"sbn-c"}}, nil},
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

// The instance alone tells whose an ENI is: naming the cluster later, or another, changes
// neither indexes nor whether an ENI may be deleted, and makes no second one of a token.
func TestAnotherClusterKeepsTheENIs(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	first, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 2})
	must(t, err)
	for _, cluster := range []string{"blue", "green", ""} {
		named, _ := s.open(t, "i-n1", engine.Options{Cluster: cluster})
		list, err := named.Interfaces(t.Context())
		if err != nil || len(list) != 2 || !list[1].Ours || list[1].Index != first.Index || list[1].Token != "t" {
			t.Errorf("in cluster %q: %+v, %v", cluster, list, err)
		}
		again, err := named.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 2})
		if err != nil || again.ID != first.ID {
			t.Errorf("in cluster %q the token makes %+v, %v", cluster, again, err)
		}
	}
	named, _ := s.open(t, "i-n1", engine.Options{Cluster: "blue"})
	must(t, named.DeleteInterface(t.Context(), first.ID))
	must(t, s.Check())
}

// Both kinds of security groups follow the configuration, from one kind to the other too.
func TestSecurityGroupsOfENIsFollowTheConfiguration(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	for _, id := range []string{"g-2", "esg-1", "esg-2"} {
		s.AddGroup(sim.Group{ID: id, Name: id})
	}
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	must(t, err)
	for _, groups := range [][]string{{"g-2"}, {"esg-1", "esg-2"}, {"g-1", "g-2"}, nil} {
		again, _ := s.open(t, "i-n1", engine.Options{SecurityGroups: groups})
		_, err := again.Interfaces(t.Context())
		must(t, err)
		want := groups
		if want == nil {
			want = []string{"g-1"} // those of the primary ENI
		}
		for _, changes := range []int{1, 0} {
			changed, err := again.Upkeep(t.Context())
			var has []string
			s.View(0, func(tx *sim.Tx) {
				shown, missing := tx.Interface(i.ID)
				must(t, missing)
				has = shown.Groups
			})
			if err != nil || len(changed) != changes || !slices.Equal(has, want) {
				t.Errorf("with %v: changed %v, %v; the ENI has %v", groups, changed, err, has)
			}
		}
	}
}

// An ENI of the cluster goes when its instance is gone, as two sweeps have found. One of
// an instance that lives is that instance's affair, attached or not.
func TestSweepDeletesTheClustersOldENIsOfInstancesThatAreGone(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	open := func(instance, cluster string) *engine.Node {
		c, _ := s.open(t, instance, engine.Options{Cluster: cluster})
		return c
	}
	c, others := open("i-n2", "blue"), open("i-n1", "green")
	var made []cloud.Interface
	for n, from := range []*engine.Node{open("i-n1", "blue"), open("i-n1", "blue"), others} {
		i, err := from.CreateInterface(t.Context(), cloud.Create{Token: string(rune('a' + n)), Subnet: "sbn-a", V4: 1})
		must(t, err)
		made = append(made, i)
	}
	must(t, s.Detach(made[1].ID))
	must(t, s.Detach(made[2].ID))
	sweep := func(when string, age time.Duration, want ...string) {
		t.Helper()
		gone, err := c.Sweep(t.Context(), age)
		slices.Sort(gone)
		slices.Sort(want)
		if err != nil || !slices.Equal(gone, want) {
			t.Errorf("%s: Sweep = %v, %v; want %v", when, gone, err, want)
		}
	}
	sweep("its instance lives", -time.Hour)
	sweep("it still does", -time.Hour)
	must(t, s.Terminate("i-n1"))
	sweep("young ENIs", time.Hour)
	sweep("found for the first time", -time.Hour)
	w := sim.Fault{Err: &sim.Error{Reason: sim.Unavailable, Code: "Unheard", Status: http.StatusNotFound}}
	s.Endpoint.FailNext("GetInstanceDetail", w)
	sweep("a 404 that is not the cloud's word", -time.Hour)
	sweep("found for the first time again", -time.Hour)
	sweep("without its instance", -time.Hour, made[0].ID, made[1].ID)
	sweep("after that", -time.Hour)
}
