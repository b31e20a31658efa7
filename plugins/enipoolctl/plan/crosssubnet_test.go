package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// With cloud.crossSubnet nodes need no ENI in a topology's subnet, and its addresses are for pods alone.
func TestAcrossSubnetsTopologiesNeedNoENIsOfTheirOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "topologies.yaml")
	text := `apiVersion: enipool.io/v1alpha1
kind: Subnet
metadata: {name: db}
spec: {use: Exclusive}
---
apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: databases}
spec: {subnets: [{id: db}], strategy: {type: Sticky, ttl: 24h}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--subnet", "a=10.0.0.0/20", "--subnet", "db=10.0.16.0/26", "--instance-type", "bcc.g5.c16m64", "--file", file, "--topology-pods", "databases=55", "--topology-places", "9",
		"--nodes", "30", "--max-pods", "64"}
	for _, tt := range []struct {
		more []string
		want []string
		fits bool
	}{
		{nil, []string{"29 places of 1 ENI are kept", "needed: addresses for 55 pods of topologies: does not fit, subnets and ranges hold 29"}, false},
		{[]string{"--cross-subnet"}, []string{"9 places of any ENI are kept", "needed: addresses for 55 pods of topologies: fits", "Exclusive  0       55    0     4"}, true},
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
