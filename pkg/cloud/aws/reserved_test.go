package aws

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
)

// EC2 tells neither which ranges of a subnet are reserved for prefixes nor, for sure, what
// of them is left: docs.aws.amazon.com/vpc/latest/userguide/subnet-cidr-reservation.html
func TestASubnetThatShowsNothingMayHavePrefixes(t *testing.T) {
	s := newSite(t, kind{})
	must(t, s.LeaveFree("subnet-b", 0))
	for _, prefixes := range []bool{false, true} {
		c, _ := s.open(t, "i-1", engine.Options{Subnets: []string{"subnet-b"}, Prefixes: prefixes})
		list, err := c.Subnets(t.Context())
		must(t, err)
		for _, n := range list {
			if n.Reserves != prefixes {
				t.Errorf("with prefixes %t: %+v", prefixes, n)
			}
		}
		want := map[bool]cloud.Verdict{false: cloud.Broken, true: cloud.Careful}[prefixes]
		found := false
		for _, f := range c.Check(t.Context()) {
			if strings.HasPrefix(f.What, "subnet subnet-b") {
				found = true
				if f.Verdict != want {
					t.Errorf("with prefixes %t the check says %+v", prefixes, f)
				}
			}
		}
		if !found {
			t.Error("the check says nothing of the subnet")
		}
	}
}
