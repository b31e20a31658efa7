package aws

import (
	"io"
	"log"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/eni"
)

// FuzzInterfaces: whatever EC2 answers, no ENI is shown that can't be right.
func FuzzInterfaces(f *testing.F) {
	for _, seed := range []string{
		enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20")),
		enisXML(eniXML("eni-1", 0, "10.0.0.10", "<tagSet>", "<ipv4PrefixSet><item><ipv4Prefix>10.0.0.64/28</ipv4Prefix></item></ipv4PrefixSet><tagSet>")),
		enisXML(eniXML("eni-1", 0, "10.0.0.10", "<tagSet>", "<ipv6AddressesSet><item><ipv6Address>2001:db8::5</ipv6Address></item></ipv6AddressesSet>"+
			"<ipv6PrefixSet><item><ipv6Prefix>2001:db8:0:0:1::/80</ipv6Prefix></item></ipv6PrefixSet><tagSet>")),
		enisXML(eniXML("eni-1", 0, "10.0.0.10"), eniXML("eni-2", 1, "10.0.0.20", "<tagSet>",
			"<tagSet><item><key>enipool/node</key><value>i-1</value></item><item><key>enipool/token</key><value>t</value></item></tagSet><x>", "</tagSet>", "</x>")),
		"<a><b></a>",
	} {
		f.Add([]byte(seed))
	}
	if text, err := os.ReadFile("testdata/reference/DescribeNetworkInterfaces.xml"); err == nil {
		f.Add(text)
	}
	log.SetOutput(io.Discard)
	f.Fuzz(func(t *testing.T, answer []byte) {
		c, ec2 := newCanned(t, engine.Options{IPv6: true})
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeInstances", instanceXML)
		ec2.says("DescribeInstanceTypes", typeXML)
		ec2.answers["DescribeNetworkInterfaces"] = func(url.Values) (int, string) { return http.StatusOK, string(answer) }
		list, err := c.Interfaces(t.Context())
		if err != nil {
			return
		}
		cidrs := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("2001:db8::/64")}
		index, seen := map[int]bool{}, map[netip.Addr]bool{}
		for at, i := range list {
			if i.ID == "" || len(i.MAC) != 17 || i.Subnet != "subnet-a" || (i.Index == 0) != (at == 0) || i.Index >= 0 && index[i.Index] || i.Index > eni.MaxIndex ||
				i.Index < 0 && !i.Ours || i.Ours != (i.Token != "") {
				t.Errorf("shown: %+v", i)
			}
			index[i.Index] = true
			all := append(i.Addresses, i.V4.Primary.Addr(), i.V6.Primary.Addr())
			for _, a := range all {
				if !a.IsValid() {
					continue
				}
				if seen[a] || !cidrs[0].Contains(a) && !cidrs[1].Contains(a) || a == i.V4.Gateway {
					t.Errorf("address %s of %+v", a, i)
				}
				seen[a] = true
			}
			for _, n := range []eni.Net{i.V4, i.V6} {
				if n.IsValid() && (n.Primary.Masked() != cidrs[0] && n.Primary.Masked() != cidrs[1] || !n.Gateway.IsValid()) {
					t.Errorf("place %+v", n)
				}
			}
		}
	})
}
