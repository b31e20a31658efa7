package aws

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/test/fakecloud/ec2"
	"github.com/google/go-cmp/cmp"
)

func TestLimitsAreThoseOfAllNetworkCards(t *testing.T) {
	types := map[string]sim.Type{}
	for _, typ := range ec2.Types() {
		types[typ.Name] = typ
	}
	for _, tt := range []struct {
		typ  string
		o    engine.Options
		want eni.Limits
	}{
		{"m5.large", engine.Options{}, eni.Limits{ENIs: 3, V4: 10}},
		{"p4d.24xlarge", engine.Options{}, eni.Limits{ENIs: 60, V4: 50}},
		{"m5.large", engine.Options{Prefixes: true}, eni.Limits{ENIs: 3, V4: 1 + 9*16, V4Block: eni.Block{Bits: 28, Size: 16}}},
		{"m4.large", engine.Options{Prefixes: true}, eni.Limits{ENIs: 2, V4: 10}},
		{"m5.large", engine.Options{IPv6: true}, eni.Limits{ENIs: 3, V4: 10, V6: 10, V6Block: eni.Block{Bits: 80, Size: 9}}},
		{"m4.large", engine.Options{IPv6: true}, eni.Limits{ENIs: 2, V4: 10, V6: 10}},
		{"m5.large", engine.Options{IPv6: true, Prefixes: true}, eni.Limits{ENIs: 3, V4: 145, V6: 145,
			V4Block: eni.Block{Bits: 28, Size: 16}, V6Block: eni.Block{Bits: 80, Size: 144}}},
	} {
		s := newSite(t, kind{typ: types[tt.typ], v6: tt.o.IPv6})
		asked, _ := s.open(t, "i-1", tt.o)
		got, err := asked.Limits(t.Context())
		must(t, err)
		if got != tt.want {
			t.Errorf("%s with %+v: %+v, want %+v", tt.typ, tt.o, got, tt.want)
		}
		// The same where it may not be asked, from the built-in table, which knows of the
		// first network card alone.
		tt.want.ENIs = min(tt.want.ENIs, 15)
		var log bytes.Buffer
		tt.o.Log = slog.New(slog.NewTextHandler(&log, nil))
		builtin, _ := s.open(t, "i-1", tt.o)
		s.Allow([]string{"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"})
		if got, err = builtin.Limits(t.Context()); err != nil || got != tt.want {
			t.Errorf("%s of the built-in table: %+v, %v", tt.typ, got, err)
		}
		if !strings.Contains(log.String(), "built-in table") || !strings.Contains(log.String(), "UnauthorizedOperation") {
			t.Errorf("the log says %s", &log)
		}
	}
}

func TestBuiltInLimitsComeWhereEC2DoesNotAnswerToo(t *testing.T) {
	s := newSite(t, kind{typ: sim.Type{Name: "m5.large", ENIs: 3, V4: 10}})
	for name, status := range map[string]int{"nobody is there": 0, "it fails": 500} {
		var log bytes.Buffer
		c, ear := s.open(t, "i-1", engine.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range readTries {
			if status == 0 {
				ear.refuse("DescribeInstanceTypes")
			} else {
				s.Endpoint.FailNext("DescribeInstanceTypes", sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}})
			}
		}
		if got, err := c.Limits(t.Context()); err != nil || got != (eni.Limits{ENIs: 3, V4: 10}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if !strings.Contains(log.String(), "built-in table") {
			t.Errorf("%s: the log says %s", name, &log)
		}
	}
}

func TestLimitsOfATypeThatNobodyKnowsAreAnError(t *testing.T) {
	s := newSite(t, kind{})
	c, _ := s.open(t, "i-1", engine.Options{})
	s.Allow([]string{})
	if got, err := c.Limits(t.Context()); !errors.Is(err, cloud.ErrForbidden) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAThrottledQuestionForLimitsIsNoReasonToGuess(t *testing.T) {
	s := newSite(t, kind{typ: sim.Type{Name: "m5.large", ENIs: 3, V4: 10}})
	c, _ := s.open(t, "i-1", engine.Options{})
	for range readTries {
		s.Endpoint.FailNext("DescribeInstanceTypes", sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
	}
	if got, err := c.Limits(t.Context()); !errors.Is(err, cloud.ErrThrottled) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNothingIsAskedBeforeAMethodIsCalled(t *testing.T) {
	s := newSite(t, kind{})
	c, _ := s.open(t, "i-1", engine.Options{})
	if calls := s.Calls(); len(calls) != 0 {
		t.Errorf("asked: %v", calls)
	}
	for range 3 {
		_, err := c.Interfaces(t.Context())
		must(t, err)
	}
	metadata := s.Calls()["Metadata"]
	_, err := c.Limits(t.Context())
	must(t, err)
	if got := s.Calls()["Metadata"]; got != metadata {
		t.Errorf("the metadata was asked %d times, then %d times", metadata, got)
	}
}

func TestANodeThatIsNamedNeedsNoMetadata(t *testing.T) {
	s := newSite(t, kind{endpoint: ec2.Options{}})
	c := newNode(New(Options{Endpoint: s.url, Metadata: "http://127.0.0.1:1", Instance: "i-1", Region: "eu-test-1"}), engine.Options{})
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	s.SetKeys(map[string]string{testKey: testSecret})
	limits, err := c.Limits(t.Context())
	if err != nil || limits.ENIs != testType.ENIs {
		t.Errorf("%+v, %v", limits, err)
	}
	list, err := c.Interfaces(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	lost := newNode(New(Options{Endpoint: s.url, Metadata: "http://127.0.0.1:1"}), engine.Options{})
	if _, err := lost.Interfaces(t.Context()); !errors.Is(err, cloud.ErrUnavailable) || !strings.Contains(err.Error(), "cloud.instance") {
		t.Errorf("without a name and metadata: %v", err)
	}
}

func TestSubnetsAreChosenByIDAndByTag(t *testing.T) {
	s := newSite(t, kind{})
	for _, add := range []sim.Subnet{
		{ID: "subnet-far", V4: netip.MustParsePrefix("10.0.8.0/24"), Zone: "eu-test-1b", Tags: map[string]string{"pods": "yes"}},
		{ID: "subnet-none", V4: netip.MustParsePrefix("10.0.9.0/24"), Tags: map[string]string{"pods": "no"}},
	} {
		must(t, s.AddSubnet(add))
	}
	for _, tt := range []struct {
		o    engine.Options
		want string
	}{
		{engine.Options{}, "subnet-a new"},
		{engine.Options{Subnets: []string{"subnet-b"}}, "subnet-a, subnet-b new"},
		{engine.Options{Subnets: []string{"subnet-b", "subnet-far", "subnet-of-nobody"}}, "subnet-a, subnet-b new"},
		{engine.Options{SubnetTags: map[string]string{"pods": "yes"}}, "subnet-a new, subnet-b new"},
		{engine.Options{SubnetTags: map[string]string{"pods": "*"}}, "subnet-a"},
		{engine.Options{Subnets: []string{"subnet-none"}, SubnetTags: map[string]string{"pods": "yes"}}, "subnet-a new, subnet-b new, subnet-none new"},
		{engine.Options{SubnetTags: map[string]string{"pods": "yes", "other": "x"}}, "subnet-a"},
	} {
		c, _ := s.open(t, "i-1", tt.o)
		list, err := c.Subnets(t.Context())
		must(t, err)
		var shown []string
		for _, s := range list {
			shown = append(shown, strings.TrimSpace(s.ID+" "+map[bool]string{true: "new"}[s.New]))
		}
		if got := strings.Join(shown, ", "); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.o, got, tt.want)
		}
	}
}

func TestANewENIIsMadeAsTheOptionsSay(t *testing.T) {
	s := newSite(t, kind{})
	s.AddGroup(sim.Group{ID: "sg-2", Name: "pods"})
	for _, tt := range []struct {
		o      engine.Options
		groups []string
		tags   map[string]string
	}{
		{engine.Options{}, []string{"sg-1"}, map[string]string{"enipool/node": "i-1", "enipool/token": "t1"}},
		{engine.Options{SecurityGroups: []string{"sg-2"}, Cluster: "blue", Tags: map[string]string{"team": "net"}}, []string{"sg-2"},
			map[string]string{"enipool/node": "i-1", "enipool/token": "t2", "enipool/cluster": "blue", "team": "net"}},
	} {
		c, _ := s.open(t, "i-1", tt.o)
		i, err := c.CreateInterface(t.Context(), cloud.Create{Token: tt.tags["enipool/token"], Subnet: "subnet-b", V4: 2})
		must(t, err)
		var made sim.Interface
		s.View(0, func(tx *sim.Tx) { made, err = tx.Interface(i.ID) })
		must(t, err)
		tt.tags["enipool/created"] = i.Created.Format(time.RFC3339Nano)
		if diff := cmp.Diff(tt.tags, made.Tags); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
		if !slices.Equal(made.Groups, tt.groups) || !made.Attachment.DeleteOnTermination || made.Attachment.Instance != "i-1" {
			t.Errorf("it is %+v", made)
		}
	}
	must(t, s.Terminate("i-1"))
	s.View(0, func(tx *sim.Tx) {
		if left := tx.Interfaces(); len(left) != 1 {
			t.Errorf("after the instance there are %+v", left)
		}
	})
}

// EC2 answers to a client token with the ENI that it made first, even if that is gone. A
// process that has not seen it go takes that for a describe that lags, at first.
func TestATokenWhoseENIWasDeletedMakesAnother(t *testing.T) {
	s := newSite(t, kind{})
	c, _ := s.open(t, "i-1", engine.Options{})
	request := cloud.Create{Token: "again", Subnet: "subnet-a", V4: 2}
	s.Endpoint.FailNext("AttachNetworkInterface", sim.Fault{Err: &sim.Error{Reason: sim.AttachmentLimit}})
	if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrLimit) {
		t.Fatal(err)
	}
	if list, err := c.Interfaces(t.Context()); err != nil || len(list) != 1 {
		t.Fatalf("left over: %+v, %v", list, err)
	}
	restarted, _ := s.open(t, "i-1", engine.Options{})
	if _, err := restarted.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
		t.Fatal(err)
	}
	restarted.clock.Set(3 * time.Minute)
	for _, agent := range []*node{restarted, c} {
		i, err := agent.CreateInterface(t.Context(), request)
		must(t, err)
		if list, err := c.Interfaces(t.Context()); err != nil || len(list) != 2 || list[1].ID != i.ID {
			t.Errorf("%+v, %v", list, err)
		}
	}
	must(t, s.Check())
}

// EC2 refuses a client token that comes with other parameters, as after a restart,
// when the time of the tag is another.
func TestAnENIOfAnEarlierProcessThatDescribesDontShowYetIsWaitedFor(t *testing.T) {
	s := newSite(t, kind{account: sim.Options{Lag: 60 * time.Millisecond, Seed: 3}})
	request := cloud.Create{Token: "again", Subnet: "subnet-a", V4: 2}
	for range 8 {
		request.Token += "."
		before, _ := s.open(t, "i-1", engine.Options{})
		s.Endpoint.FailNext("CreateNetworkInterface", sim.Fault{Answer: sim.Lost})
		if _, err := before.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
			t.Fatal(err)
		}
		after, _ := s.open(t, "i-1", engine.Options{})
		i, err := after.CreateInterface(t.Context(), request)
		must(t, err)
		s.SetLag(0)
		list, err := after.Interfaces(t.Context())
		if err != nil || len(list) != 2 || list[1].ID != i.ID {
			t.Fatalf("%+v, %v", list, err)
		}
		must(t, after.DeleteInterface(t.Context(), i.ID))
		s.SetLag(60 * time.Millisecond)
	}
}

// EC2 calls an ENI in use until it has left: when it has, it is attached again.
func TestAnENIThatIsStillLeavingIsAttachedWhenItHasLeft(t *testing.T) {
	s := newSite(t, kind{})
	c, _ := s.open(t, "i-1", engine.Options{})
	s.Endpoint.FailNext("AttachNetworkInterface", sim.Fault{Err: &sim.Error{Reason: sim.AlreadyAttached}})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1})
	if err != nil || i.Index != 1 {
		t.Errorf("%+v, %v", i, err)
	}
	must(t, s.Check())
}

func TestAContextThatEndsEndsTheWaiting(t *testing.T) {
	s := newSite(t, kind{account: sim.Options{AttachTime: time.Hour, DetachTime: time.Hour}})
	c, _ := s.open(t, "i-1", engine.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.CreateInterface(ctx, cloud.Create{Token: "slow", Subnet: "subnet-a", V4: 1})
		done <- err
	}()
	for s.Calls()["AttachNetworkInterface"] == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("%v", err)
	}
	list, err := c.Interfaces(t.Context())
	if err != nil || len(list) != 2 || list[1].Index != -1 || list[1].Token != "slow" {
		t.Errorf("while it attaches: %+v, %v", list, err)
	}
}

func TestASubnetInPiecesGivesSingleAddressesInPlaceOfPrefixes(t *testing.T) {
	s := newSite(t, kind{})
	c, _ := s.open(t, "i-1", engine.Options{Prefixes: true})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-b"})
	must(t, err)
	must(t, s.Fragment("subnet-b", true))
	got, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 32)
	must(t, err)
	if len(got) != 7 { // one for each place that a prefix could have had
		t.Errorf("got %v", got)
	}
	if got, err = c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 16); !errors.Is(err, cloud.ErrLimit) || len(got) > 0 {
		t.Errorf("a full ENI got %v, %v", got, err)
	}
}

// Half of the blocks that were asked for are there.
func TestAsManyPrefixesAreTakenAsThereAre(t *testing.T) {
	s := newSite(t, kind{})
	c, _ := s.open(t, "i-1", engine.Options{Prefixes: true})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-b"})
	must(t, err)
	must(t, s.LeaveFree("subnet-b", 16*3+8))
	got, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 16*5)
	must(t, err)
	var blocks int
	s.View(0, func(tx *sim.Tx) {
		n, _ := tx.Interface(i.ID)
		blocks = len(n.Prefixes)
		if want := 16*blocks + len(n.V4); len(got) != want {
			t.Errorf("got %d addresses, there are %d: %v %v", len(got), want, n.Prefixes, n.V4)
		}
	})
	if blocks == 0 || len(got) <= 16*blocks {
		t.Errorf("%d blocks, %v", blocks, got)
	}
}

func TestPagesAreReadToTheEnd(t *testing.T) {
	c, ec2 := newCanned(t, engine.Options{})
	ec2.says("DescribeSubnets", subnetXML)
	next := map[string]string{"": "p2", "p2": "p3", "p3": ""}
	id := map[string]string{"": "eni-1", "p2": "eni-2", "p3": "eni-3"}
	ec2.answers["DescribeNetworkInterfaces"] = func(form url.Values) (int, string) {
		page := form.Get("NextToken")
		n := strings.TrimPrefix(id[page], "eni-")
		answer := enisXML(eniXML(id[page], int(n[0]-'1'), "10.0.0."+n+"5"))
		return 200, strings.Replace(answer, "</networkInterfaceSet>", "</networkInterfaceSet><nextToken>"+next[page]+"</nextToken>", 1)
	}
	list, err := c.Interfaces(t.Context())
	if err != nil || len(list) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	next["p3"] = "p3"
	if list, err = c.Interfaces(t.Context()); !errors.Is(err, cloud.ErrUnavailable) {
		t.Errorf("a page that comes again and again: %+v, %v", list, err)
	}
}

func TestLeakedENIsOfInstancesThatAreGoneAreSwept(t *testing.T) {
	s := newSite(t, kind{})
	_, err := s.AddInstance(sim.Instance{ID: "i-3", Type: testType.Name, Subnet: "subnet-a"})
	must(t, err)
	request := cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1}
	ids := map[string]string{}
	for _, of := range []struct{ instance, cluster string }{{"i-1", "blue"}, {"i-2", "blue"}, {"i-2", "red"}, {"i-3", "blue"}} {
		c, _ := s.open(t, of.instance, engine.Options{Cluster: of.cluster})
		request.Token = of.instance + of.cluster
		s.Endpoint.FailNext("AttachNetworkInterface", sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}})
		if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrUnknown) {
			t.Fatal(err)
		}
		list, err := c.Interfaces(t.Context())
		must(t, err)
		ids[request.Token] = list[len(list)-1].ID
	}
	c, _ := s.open(t, "i-1", engine.Options{Cluster: "blue"})
	sweep := func(age time.Duration, want ...string) {
		t.Helper()
		deleted, err := c.Sweep(t.Context(), age)
		if err != nil || !slices.Equal(deleted, want) {
			t.Errorf("swept %v, %v; want %v of %v", deleted, err, want, ids)
		}
	}
	sweep(0)
	sweep(0) // all instances live
	must(t, s.Terminate("i-2"))
	sweep(time.Hour)
	sweep(0)                 // it is gone, as one answer says
	sweep(0, ids["i-2blue"]) // and another
	sweep(0)
	list, err := c.Interfaces(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("of its own the node has %+v, %v", list, err)
	}
	none, _ := s.open(t, "i-1", engine.Options{})
	if deleted, err := none.Sweep(t.Context(), 0); err != nil || deleted != nil || none.d.self.Instance != "" {
		t.Errorf("without a cluster: %v, %v", deleted, err)
	}
}

func TestOthersENIsAreNeverDetachedOrDeleted(t *testing.T) {
	other := eniXML("eni-2", 1, "10.0.0.20", "<tagSet>", "<tagSet><item><key>enipool/node</key><value>i-2</value></item><item><key>enipool/token</key><value>t</value></item>")
	moved := strings.NewReplacer("<instanceId>i-1<", "<instanceId>i-2<", "<value>i-2<", "<value>i-1<").Replace(other)
	for _, answer := range []string{eniXML("eni-2", 1, "10.0.0.20"), other, moved} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.answers["DescribeNetworkInterfaces"] = func(form url.Values) (int, string) {
			if form.Get("Filter.1.Name") == "attachment.instance-id" {
				return 200, enisXML(eniXML("eni-1", 0, "10.0.0.10"))
			}
			return 200, enisXML(answer)
		}
		if err := c.DeleteInterface(t.Context(), "eni-2"); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("%v", err)
		}
		if ec2.count("DetachNetworkInterface")+ec2.count("DeleteNetworkInterface") > 0 {
			t.Errorf("it was tried: %v", ec2.asked)
		}
	}
}

func TestWhatIsLeftOutIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	c, ec2 := newCanned(t, engine.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	ec2.says("DescribeSubnets", subnetXML)
	ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.9.0.20")))
	for range 3 {
		_, err := c.Interfaces(t.Context())
		must(t, err)
	}
	if n := strings.Count(log.String(), "eni=eni-2 why="); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
}
