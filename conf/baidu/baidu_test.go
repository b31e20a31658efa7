package baidu

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestThePolicyIsOneAndAllowsNothingButNetworkAndInstances(t *testing.T) {
	var policy struct {
		Version string
		ACL     []struct {
			Service, Region, Effect string
			Resource, Permission    []string
		} `json:"accessControlList"`
	}
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
