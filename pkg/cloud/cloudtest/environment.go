package cloudtest

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// List returns what an environment variable names, split by commas.
func List(name string) []string {
	return strings.FieldsFunc(os.Getenv(name), func(r rune) bool { return r == ',' })
}

// FromEnvironment is a node of an endpoint that the environment names. CLOUD_LAG is its
// Lag, 5s if not set, CLOUD_LACKS what it does not do as a cloud does. Without subnets
// new ENIs lie in that of the node's own one. What was made for the node is deleted,
// before and after.
func FromEnvironment(t *testing.T, c cloud.Cloud, subnets []string) Subject {
	t.Helper()
	lag, err := time.ParseDuration(cmp.Or(os.Getenv("CLOUD_LAG"), "5s"))
	if err != nil {
		t.Fatalf("CLOUD_LAG: %v", err)
	}
	var lacks []Capability
	for _, name := range List("CLOUD_LACKS") {
		if !slices.Contains([]Capability{Tokens, Quotas, Guard}, Capability(name)) {
			t.Fatalf("CLOUD_LACKS: no capability is called %q", name)
		}
		lacks = append(lacks, Capability(name))
	}
	rest := clean(t, c, lag)
	if len(subnets) == 0 {
		subnets = []string{rest[0].Subnet}
	}
	t.Cleanup(func() { clean(t, c, lag) })
	return Subject{Cloud: c, Subnets: subnets, Lag: lag, Lacks: lacks}
}

// clean deletes what was made for the node, and returns what it has besides.
func clean(t *testing.T, c cloud.Cloud, lag time.Duration) (rest []cloud.Interface) {
	t.Helper()
	list, err := c.Interfaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if !i.Ours {
			rest = append(rest, i)
			continue
		}
		if err := c.DeleteInterface(context.Background(), i.ID); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) > len(rest) {
		time.Sleep(lag) // until it shows; an account far away has no other way to tell
	}
	return rest
}
