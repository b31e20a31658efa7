package cloudtest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// List returns what an environment variable names, split by commas.
func List(name string) []string {
	return strings.FieldsFunc(os.Getenv(name), func(r rune) bool { return r == ',' })
}

// Flag tells whether an environment variable says yes: 1, true. Not set is no.
func Flag(t *testing.T, name string) bool {
	t.Helper()
	yes, err := strconv.ParseBool(cmp.Or(os.Getenv(name), "false"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return yes
}

// FromEnvironment completes the subject of an endpoint that the environment names.
// CLOUD_LAG is its Lag, 5s if not set, CLOUD_LACKS what it does not do as a cloud does.
// What was made for the node is deleted, before and after, and after it addresses that
// have come to the node's own ENI since.
func FromEnvironment(t *testing.T, subject Subject) Subject {
	t.Helper()
	var err error
	if subject.Lag, err = time.ParseDuration(cmp.Or(os.Getenv("CLOUD_LAG"), "5s")); err != nil {
		t.Fatalf("CLOUD_LAG: %v", err)
	}
	for _, name := range List("CLOUD_LACKS") {
		if !slices.Contains([]Capability{Tokens, Quotas, Guard, Attached, Faults, Detaching}, Capability(name)) {
			t.Fatalf("CLOUD_LACKS: no capability is called %q", name)
		}
		subject.Lacks = append(subject.Lacks, Capability(name))
	}
	before := deleteMade(t, subject)
	t.Cleanup(func() {
		for _, now := range deleteMade(t, subject) {
			at := slices.IndexFunc(before, func(i cloud.Interface) bool { return i.ID == now.ID })
			if at < 0 {
				continue // somebody else's, since then
			}
			if err := subject.Cloud.UnassignAddresses(context.Background(), now.ID, withoutAddrs(now.Addresses, before[at].Addresses...)); err != nil {
				t.Error(err)
			}
		}
	})
	return subject
}

// deleteMade deletes what was made for the node, and returns what it has besides. It also deletes
// ENIs of ours that Interfaces leaves out, which would be in the way of the next sentence.
func deleteMade(t *testing.T, subject Subject) (rest []cloud.Interface) {
	t.Helper()
	list, err := subject.Cloud.Interfaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	deleted := false
	for _, i := range list {
		if !i.Ours {
			rest = append(rest, i)
			continue
		}
		if err := subject.Cloud.DeleteInterface(context.Background(), i.ID); err != nil {
			t.Fatal(err)
		}
		deleted = true
	}
	if q, ok := subject.Cloud.(cloud.Quarantiner); ok {
		for _, hidden := range q.Quarantined() {
			if hidden.Address.IsValid() {
				continue // its ENI is shown
			}
			err := subject.Cloud.DeleteInterface(context.Background(), hidden.ID)
			switch {
			case errors.Is(err, cloud.ErrForbidden): // not ours
			case err != nil:
				t.Fatalf("%v; it is left out of Interfaces: %s", err, hidden.Why)
			default:
				deleted = true
			}
		}
	}
	if deleted {
		time.Sleep(subject.Lag) // until it shows; an account far away has no other way to tell
	}
	return rest
}
