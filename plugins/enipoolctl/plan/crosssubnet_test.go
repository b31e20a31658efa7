package plan

import (
	"slices"
	"strings"
	"testing"
)

// With cloud.crossSubnet nodes need no ENI in a topology's subnet, and its addresses are for pods alone.
func TestAcrossSubnetsTopologiesNeedNoENIsOfTheirOwn(t *testing.T) {
	file := topologyOf(t)
	args := []string{"--subnet", "a=10.0.0.0/20", "--subnet", "db=10.0.16.0/26", "--instance-type", "bcc.g5.c16m64", "--file", file, "--topology-pods", "databases=55", "--topology-places", "9",
		"--nodes", "30", "--max-pods", "64"}
	for _, tt := range []struct {
		more []string
		want []string
		fits bool
	}{
		{nil, []string{"29 places of 1 ENI are kept", "30 nodes need 120 ENIs, 30 of them kept for topologies; the quota is 500", "needed: addresses for 55 pods of topologies: does not fit, subnets and ranges hold 29"}, false},
		{[]string{"--cross-subnet"}, []string{"9 places of any ENI are kept", "30 nodes need 90 ENIs; the quota is 500", "needed: addresses for 55 pods of topologies: fits", "Exclusive  0       55    0     4"}, true},
	} {
		out, err := run(slices.Concat(args, tt.more)...)
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", tt.more, want, out)
			}
		}
		if (err == nil) != tt.fits {
			t.Errorf("%v: %v", tt.more, err)
		}
	}
	if _, err := run("--subnet", "10.0.0.0/20", "--instance-type", "m5.large", "--cross-subnet"); err == nil || !strings.Contains(err.Error(), "--cross-subnet: ENIs of aws") {
		t.Errorf("on aws: %v", err)
	}
}

// Where places are on ENIs that pods have anyway, those are as many as pods and places need.
func TestPlacesOfAnyENIAreCountedInTheENIsOfANode(t *testing.T) {
	for want, places := range map[string]string{
		"58        a        -     4094       2          60        68":  "0",
		"58        a        -     4094       3          61        67 ": "1",
		"needed: 30 nodes: does not fit, missing 5 nodes, 20 ENIs of":  "30", // 4 of each node
	} {
		out, _ := run("--subnet", "a=10.0.0.0/20", "--instance-type", "bcc.g5.c16m64", "--cross-subnet", "--topology-places", places, "--nodes", "30", "--max-pods", "58", "--eni-quota", "100")
		if !strings.Contains(out, want) {
			t.Errorf("%s places: no %q in\n%s", places, want, out)
		}
	}
}
