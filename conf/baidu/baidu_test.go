package baidu

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

type policy struct {
	Version string
	ACL     []struct {
		Service, Region, Effect string
		Resource, Permission    []string
	} `json:"accessControlList"`
}

// permissions are all of a policy.
func permissions(t *testing.T, text string) (list []string) {
	t.Helper()
	var p policy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	for _, entry := range p.ACL {
		list = append(list, entry.Permission...)
	}
	return list
}

// No list says which permission a call needs. What is known: an operator calls what nodes call, and reserves ranges besides.
func TestTheOperatorsPolicyIsThatOfNodesWithReservedRanges(t *testing.T) {
	want := append(permissions(t, Policy), "SUBNET_FULL_CONTROL")
	if got := permissions(t, OperatorPolicy); !slices.Equal(got, want) {
		t.Errorf("an operator may %v, want %v", got, want)
	}
}

func TestThePolicyIsOneAndAllowsNothingButNetworkAndInstances(t *testing.T) {
	var policy policy
	if err := json.Unmarshal([]byte(Policy), &policy); err != nil {
		t.Fatal(err)
	}
	if policy.Version != "v1" || len(policy.ACL) == 0 {
		t.Errorf("the policy is %+v", policy)
	}
	for _, entry := range policy.ACL {
		if entry.Effect != "Allow" || entry.Region == "" || len(entry.Resource) == 0 ||
			entry.Service != "bce:network" && entry.Service != "bce:bcc" {
			t.Errorf("entry %+v is not what a node needs", entry)
		}
		for _, permission := range entry.Permission {
			if !strings.HasSuffix(permission, "_READ") && permission != "ENIC_FULL_CONTROL" {
				t.Errorf("permission %s is more than a node needs", permission)
			}
		}
	}
}
