package aws

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// Two good ENIs, of which the second is changed.
func TestAnENIThatCantBeRightIsLeftOutAndReported(t *testing.T) {
	const v6 = "<ipv6AddressesSet><item><ipv6Address>2001:db8::5</ipv6Address></item></ipv6AddressesSet><tagSet>"
	for _, tt := range []struct {
		name, why string
		changes   []string
	}{
		{"no MAC", `MAC "" can't be one`, []string{"<macAddress>02:00:00:00:00:01</macAddress>", ""}},
		{"a MAC of eight bytes", `MAC "02:00:00:00:00:01:02:03" can't be one`, []string{"00:01</mac", "00:01:02:03</mac"}},
		{"a blank in the ID", `ENI ID "eni 2" can't be one`, []string{"eni-2", "eni 2"}},
		{"no ID", `ENI ID "" can't be one`, []string{"<networkInterfaceId>eni-2</networkInterfaceId>", ""}},
		{"an unknown subnet", `subnet "subnet-x" is not known`, []string{"subnet-a", "subnet-x"}},
		{"a primary address outside of the subnet", "primary address 10.9.0.20 is not one of subnet subnet-a", []string{"10.0.0.20", "10.9.0.20"}},
		{"the router's address as primary", "primary address 10.0.0.1 is not one of subnet subnet-a", []string{"10.0.0.20", "10.0.0.1"}},
		{"no primary address", "it has IPv4 addresses and no primary one", []string{"<privateIpAddress>10.0.0.20</privateIpAddress><interfaceType>", "<interfaceType>", "<primary>true</primary>", "<primary>false</primary>"}},
		{"two primary addresses", "it has two primary addresses, 10.0.0.20 and 10.0.0.110", []string{"<primary>false</primary>", "<primary>true</primary>"}},
		{"a primary address that is none", `address "ten" is no ipv4 address`, []string{"10.0.0.20", "ten"}},
		{"an address that is none", `address "10.0.0.300" is no ipv4 address`, []string{"10.0.0.110", "10.0.0.300"}},
		{"an address of the other family", `address "2001:db8::1" is no ipv4 address`, []string{"10.0.0.110", "2001:db8::1"}},
		{"an address twice", "it has address 10.0.0.110 twice", []string{"<item><privateIpAddress>10.0.0.110</privateIpAddress><primary>false</primary></item>", strings.Repeat("<item><privateIpAddress>10.0.0.110</privateIpAddress><primary>false</primary></item>", 2)}},
		{"its only IPv6 address outside of the subnet", "primary address 2001:db9::5 is not one of subnet subnet-a", []string{"<tagSet>", strings.Replace(v6, "db8", "db9", 1)}},
		{"a prefix that is none", `prefix "10.0.0.64/27" is no /28`, []string{"<tagSet>", "<ipv4PrefixSet><item><ipv4Prefix>10.0.0.64/27</ipv4Prefix></item></ipv4PrefixSet><tagSet>"}},
		{"a prefix with host bits", `prefix "10.0.0.65/28" is no /28`, []string{"<tagSet>", "<ipv4PrefixSet><item><ipv4Prefix>10.0.0.65/28</ipv4Prefix></item></ipv4PrefixSet><tagSet>"}},
		{"a prefix outside of the subnet", "prefix 10.0.1.64/28 is not in subnet subnet-a", []string{"<tagSet>", "<ipv4PrefixSet><item><ipv4Prefix>10.0.1.64/28</ipv4Prefix></item></ipv4PrefixSet><tagSet>"}},
		{"a prefix over the router", "prefix 10.0.0.0/28 is not for pods in subnet subnet-a", []string{"<tagSet>", "<ipv4PrefixSet><item><ipv4Prefix>10.0.0.0/28</ipv4Prefix></item></ipv4PrefixSet><tagSet>"}},
		{"a prefix over a single address", "it has address 10.0.0.110 twice", []string{"<tagSet>", "<ipv4PrefixSet><item><ipv4Prefix>10.0.0.96/28</ipv4Prefix></item></ipv4PrefixSet><tagSet>"}},
		{"an IPv6 prefix outside of the subnet", "prefix 2001:db9::/80 is not in subnet subnet-a", []string{"<tagSet>", "<ipv6PrefixSet><item><ipv6Prefix>2001:db9::/80</ipv6Prefix></item></ipv6PrefixSet>" + v6}},
		{"a negative device index", "device index -1 can't be one", []string{"<deviceIndex>1<", "<deviceIndex>-1<"}},
		{"a device index that no table has", "device index 151 can't be one", []string{"<deviceIndex>1<", "<deviceIndex>151<"}},
		{"another instance's", `it is attached to another instance, "i-2"`, []string{"<instanceId>i-1<", "<instanceId>i-2<"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, ec2 := newCanned(t, engine.Options{})
			ec2.says("DescribeInstances", instanceXML)
			ec2.says("DescribeInstanceTypes", typeXML)
			ec2.says("DescribeSubnets", subnetXML)
			ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20", tt.changes...)))
			list, err := c.Interfaces(t.Context())
			must(t, err)
			if len(list) != 1 || list[0].ID != "eni-1" || !slices.Equal(list[0].Addresses, addrs("10.0.0.100")) {
				t.Errorf("shown: %+v", list)
			}
			if out := c.Quarantined(); len(out) != 1 || out[0].Why != tt.why {
				t.Errorf("left out: %+v, want because %q", out, tt.why)
			}
			ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20")))
			if list, err = c.Interfaces(t.Context()); err != nil || len(list) != 2 || len(c.Quarantined()) != 0 {
				t.Errorf("when it is right: %+v, %v, left out %v", list, err, c.Quarantined())
			}
		})
	}
}

// An address that can't be a pod's is left out alone, with the rest of its ENI in service.
func TestAnAddressThatCantBeRightIsLeftOutAlone(t *testing.T) {
	const more6 = "<ipv6AddressesSet><item><ipv6Address>2001:db8::5</ipv6Address><isPrimaryIpv6>true</isPrimaryIpv6></item>" +
		"<item><ipv6Address>2001:db9::6</ipv6Address></item></ipv6AddressesSet><tagSet>"
	for _, tt := range []struct {
		name, address string
		changes       []string
		rest          []netip.Addr
	}{
		{"outside of the subnet", "10.9.0.110", []string{"10.0.0.110", "10.9.0.110"}, nil},
		{"the router's", "10.0.0.1", []string{"10.0.0.110", "10.0.0.1"}, nil},
		{"the subnet's own", "10.0.0.0", []string{"10.0.0.110", "10.0.0.0"}, nil},
		{"of IPv6", "2001:db9::6", []string{"<tagSet>", more6}, addrs("10.0.0.110")},
	} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20", tt.changes...)))
		list, err := c.Interfaces(t.Context())
		must(t, err)
		if len(list) != 2 || list[1].ID != "eni-2" || !slices.Equal(list[1].Addresses, tt.rest) {
			t.Errorf("%s: shown %+v", tt.name, list)
		}
		want := []cloud.Quarantined{{ID: "eni-2", Address: netip.MustParseAddr(tt.address),
			Why: fmt.Sprintf("its address %s is not one of subnet subnet-a, and is left out alone", tt.address)}}
		if diff := cmp.Diff(want, c.Quarantined(), compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestOfTwoENIsThatClaimTheSameNeitherGetsIt(t *testing.T) {
	shared := netip.MustParseAddr("10.0.0.110")
	for _, tt := range []struct {
		name  string
		third []string
		want  string
		out   []cloud.Quarantined
	}{
		{"a device index", []string{"<deviceIndex>2<", "<deviceIndex>1<"}, "eni-1 [10.0.0.100]", []cloud.Quarantined{
			{ID: "eni-2", Why: "another ENI has device index 1 too"}, {ID: "eni-3", Why: "another ENI has device index 1 too"}}},
		{"a primary address", []string{"10.0.0.30", "10.0.0.20"}, "eni-1 [10.0.0.100]", []cloud.Quarantined{
			{ID: "eni-2", Why: "another ENI has its primary address too"}, {ID: "eni-3", Why: "another ENI has its primary address too"}}},
		{"an address", []string{"10.0.0.120", "10.0.0.110"}, "eni-1 [10.0.0.100] eni-2 [] eni-3 []", []cloud.Quarantined{
			{ID: "eni-2", Address: shared, Why: "another ENI has its address 10.0.0.110 too, which is left out alone"},
			{ID: "eni-3", Address: shared, Why: "another ENI has its address 10.0.0.110 too, which is left out alone"}}},
	} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20"), eniXML("eni-3", 2, "10.0.0.30", tt.third...)))
		list, err := c.Interfaces(t.Context())
		must(t, err)
		var shown []string
		for _, i := range list {
			shown = append(shown, i.ID, strings.ReplaceAll(strings.Trim(strings.Join(strings.Fields(textOf(i)), " "), " "), "  ", " "))
		}
		if got := strings.Join(shown, " "); got != tt.want {
			t.Errorf("%s: shown %s, want %s", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(tt.out, c.Quarantined(), compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func textOf(i cloud.Interface) string {
	var texts []string
	for _, a := range i.Addresses {
		texts = append(texts, a.String())
	}
	return "[" + strings.Join(texts, " ") + "]"
}

func TestENIsThatPodsMustNeverUseAreNotShownAndTakeTheRoomOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name string
		enis int // that pods may use
		odd  []string
	}{
		{"a trunk", 3, []string{"<interfaceType>interface", "<interfaceType>trunk"}},
		{"a branch", 3, []string{"<interfaceType>interface", "<interfaceType>branch"}},
		{"EFA", 3, []string{"<interfaceType>interface", "<interfaceType>efa"}},
		{"a service's", 3, []string{"<tagSet>", "<requesterManaged>true</requesterManaged><tagSet>"}},
		{"tagged so", 3, []string{"<tagSet>", "<tagSet><item><key>node.k8s.amazonaws.com/no_manage</key><value>true</value></item>"}},
		{"tagged so, and made by enipool", 3, []string{"<tagSet>", "<tagSet><item><key>node.k8s.amazonaws.com/no_manage</key><value>true</value></item>" +
			"<item><key>enipool/node</key><value>i-1</value></item><item><key>enipool/token</key><value>t</value></item>"}},
		{"on its way out", 4, []string{"<status>attached", "<status>detaching"}},
	} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeInstances", instanceXML)
		ec2.says("DescribeInstanceTypes", typeXML)
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20", tt.odd...)))
		list, err := c.Interfaces(t.Context())
		if err != nil || len(list) != 1 || len(c.Quarantined()) != 0 {
			t.Errorf("%s: shown %+v, %v, left out %v", tt.name, list, err, c.Quarantined())
		}
		if l, err := c.Limits(t.Context()); err != nil || l.ENIs != tt.enis {
			t.Errorf("%s: the limits are %+v, %v, want %d ENIs", tt.name, l, err, tt.enis)
		}
	}
	// One that somebody else has attached is shown, and not ours.
	for _, odd := range [][]string{nil, {"<tagSet>", "<tagSet><item><key>node.k8s.amazonaws.com/no_manage</key><value>false</value></item>"}} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20", odd...)))
		if list, err := c.Interfaces(t.Context()); err != nil || len(list) != 2 || list[1].Ours || list[1].Token != "" || list[1].Index != 1 {
			t.Errorf("%v: shown %+v, %v", odd, list, err)
		}
	}
}

func TestAnAnswerWithoutTheNodesOwnENIIsAnError(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{enisXML(), "Interfaces: not found: EC2 shows no ENI of instance i-1: is that its ID, and this its region?"},
		{"<DescribeNetworkInterfacesResponse/>", "Interfaces: not found: EC2 shows no ENI of instance i-1: is that its ID, and this its region?"},
		{enisXML(eniXML("eni-1", 0, "10.9.0.10")), "Interfaces: cloud unavailable: bad answer: the node's primary ENI eni-1: primary address 10.9.0.10 is not one of subnet subnet-a"},
		{enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20", "<deviceIndex>1<", "<deviceIndex>0<")),
			"Interfaces: cloud unavailable: bad answer: the node's primary ENI eni-1: another ENI has device index 0 too"},
	} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", tt.answer)
		if list, err := c.Interfaces(t.Context()); err == nil || err.Error() != tt.want || list != nil {
			t.Errorf("%v, %v\nwant %s", list, err, tt.want)
		}
	}
}

func TestAnswersThatCantBeReadAreErrors(t *testing.T) {
	good := enisXML(eniXML("eni-1", 0, "10.0.0.10"))
	for name, answer := range map[string]string{
		"cut short":  good[:len(good)/2],
		"empty":      "",
		"no XML":     "{\"Message\": \"hello\"}",
		"HTML":       "<html><body>captive portal</body>",
		"no number":  strings.Replace(good, "<deviceIndex>0", "<deviceIndex>zero", 1),
		"no time":    strings.Replace(good, "2026-01-02T03:04:05.000Z", "yesterday", 1),
		"no boolean": strings.Replace(good, "<primary>true", "<primary>maybe", 1),
	} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", answer)
		list, err := c.Interfaces(t.Context())
		if k := cloud.Kind(err); list != nil || err == nil || k != cloud.ErrUnavailable && k != cloud.ErrNotFound {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	c, ec2 := newCanned(t, engine.Options{})
	ec2.says("DescribeSubnets", subnetXML)
	ec2.says("DescribeNetworkInterfaces", strings.Replace(good, "<subnetId>", "<shiny><new>1</new></shiny><subnetId>", 1))
	if list, err := c.Interfaces(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("with a field that is not known: %v, %v", list, err)
	}
}

// A call that changed something and whose answer can't be read has happened.
func TestAnAnswerToAChangeThatCantBeReadIsAnUnknownOutcome(t *testing.T) {
	good := strings.ReplaceAll(reference(t, "AssignPrivateIpAddresses"), "10.2.2.", "10.0.0.")
	for name, answer := range map[string]string{
		"cut short":        good[:len(good)/2],
		"of no address":    strings.ReplaceAll(good, "10.0.0.7", "seven"),
		"of other subnets": strings.ReplaceAll(good, "10.0.0.7", "10.9.0.7"),
		"of the router":    strings.ReplaceAll(good, "10.0.0.7", "10.0.0.1"),
		"of bad prefixes":  strings.Replace(good, "<return>", "<assignedIpv4PrefixSet><item><ipv4Prefix>10.0.0.32/27</ipv4Prefix></item></assignedIpv4PrefixSet><return>", 1),
		"of nothing":       "<AssignPrivateIpAddressesResponse><return>true</return></AssignPrivateIpAddressesResponse>",
	} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("DescribeInstances", instanceXML)
		ec2.says("DescribeInstanceTypes", typeXML)
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10")))
		ec2.says("AssignPrivateIpAddresses", answer)
		got, err := c.AssignAddresses(t.Context(), "eni-1", eni.IPv4, 2)
		if len(got) > 0 || !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if n := ec2.count("AssignPrivateIpAddresses"); n != 1 {
			t.Errorf("%s: the call was made %d times", name, n)
		}
	}
}

// EC2 forgets an ENI of which it has told what can't be right: nothing is left.
func TestAnENIThatIsMadeAndCantBeRightIsDeleted(t *testing.T) {
	c, ec2 := newCanned(t, engine.Options{})
	ec2.says("DescribeInstances", instanceXML)
	ec2.says("DescribeInstanceTypes", typeXML)
	ec2.says("DescribeSubnets", subnetXML)
	ec2.answers["DescribeNetworkInterfaces"] = func(form url.Values) (int, string) {
		if form.Get("Filter.1.Name") == "attachment.instance-id" {
			return http.StatusOK, enisXML(eniXML("eni-1", 0, "10.0.0.10"))
		}
		return http.StatusOK, enisXML()
	}
	ec2.says("CreateNetworkInterface", reference(t, "CreateNetworkInterface"))
	ec2.says("DeleteNetworkInterface", "<DeleteNetworkInterfaceResponse><return>true</return></DeleteNetworkInterfaceResponse>")
	_, err := c.CreateInterface(t.Context(), cloud.Create{Token: "token", Subnet: "subnet-a", V4: 4})
	want := `CreateInterface subnet-a: forbidden: EC2 made an ENI that can't be right: ENI eni-1bcb7772: subnet "subnet-a61dafcf" is not known`
	if err == nil || err.Error() != want || ec2.count("DeleteNetworkInterface") != 1 || ec2.count("AttachNetworkInterface") != 0 {
		t.Errorf("%v\nwant %s\nafter %v", err, want, ec2.asked)
	}
}

// The endpoint's faults that a real cloud has too.
func TestAnswersThatBreakOffAreNotBelieved(t *testing.T) {
	for _, broken := range []sim.Break{sim.Cut, sim.Short} {
		s := newSite(t, kind{})
		c, _ := s.open(t, "i-1", engine.Options{})
		before, err := c.Interfaces(t.Context())
		must(t, err)
		s.Endpoint.FailNext("AssignPrivateIpAddresses", sim.Fault{Answer: broken})
		got, err := c.AssignAddresses(t.Context(), before[0].ID, eni.IPv4, 3)
		if !errors.Is(err, cloud.ErrUnknown) || len(got) != 3 {
			t.Errorf("%v: %v, %v", broken, got, err)
		}
		after, err := c.Interfaces(t.Context())
		must(t, err)
		if diff := cmp.Diff(got, after[0].Addresses, compare); diff != "" {
			t.Errorf("(-returned +there)\n%s", diff)
		}
	}
}
