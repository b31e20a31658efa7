package bce

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
)

// verdicts are what a check says, by what it is about.
func verdicts(t *testing.T, s *site, o engine.Options) map[string]cloud.Finding {
	t.Helper()
	c, _ := s.open(t, "i-n1", o)
	all := map[string]cloud.Finding{}
	for _, f := range c.Check(t.Context()) {
		if strings.Contains(f.Detail, secretKey) {
			t.Errorf("a secret is shown: %+v", f)
		}
		all[f.What] = f
	}
	return all
}

func expect(t *testing.T, got map[string]cloud.Finding, want map[string]cloud.Verdict) {
	t.Helper()
	for what, verdict := range want {
		if f, said := got[what]; !said || f.Verdict != verdict || verdict == cloud.Broken && f.Fix == "" {
			t.Errorf("%s: %+v, want %s", what, f, verdict)
		}
	}
}

func TestCheckFindsAnInstanceThatIsReadyForAnAgent(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	expect(t, verdicts(t, s, engine.Options{Subnets: []string{"sbn-a", "sbn-b"}}), map[string]cloud.Verdict{
		"instance": cloud.Works, "credentials": cloud.Works, "clock": cloud.Works, "limits": cloud.Works, "ENIs": cloud.Works,
		"security groups": cloud.Works, "subnet sbn-a": cloud.Works, "subnet sbn-b": cloud.Works})
	must(t, s.Check())
}

func TestCheckSaysWhatIsBrokenAndWhatToDo(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	must(t, s.LeaveFree("sbn-a", 0))
	must(t, s.LeaveFree("sbn-b", 3))
	expect(t, verdicts(t, s, engine.Options{Subnets: []string{"sbn-a", "sbn-b", "sbn-0"}, SecurityGroups: []string{"g-0"}}), map[string]cloud.Verdict{
		"subnet sbn-a": cloud.Broken, "subnet sbn-b": cloud.Careful, "subnet sbn-0": cloud.Broken, "security groups": cloud.Unknown})
	expect(t, verdicts(t, s, engine.Options{SubnetTags: map[string]string{"pods": "no"}}), map[string]cloud.Verdict{"subnets": cloud.Broken})
}

func TestCheckWithWrongKeysSaysSo(t *testing.T) {
	withKeys(t)
	t.Setenv("BCE_SECRET_ACCESS_KEY", "wrong")
	got := verdicts(t, newSite(t, setup{}), engine.Options{})
	expect(t, got, map[string]cloud.Verdict{"credentials": cloud.Broken})
	if _, more := got["limits"]; more {
		t.Errorf("more than the credentials is looked at: %v", got)
	}
}

func TestCheckTellsAddressesThatAreNotForPods(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	fault := swap(`"ips":[`, `"ips":[{"privateIp":"10.0.4.9","primary":"false"},`)
	s.Endpoint.FailNext("GetInstanceDetail", fault, fault, fault)
	got := verdicts(t, s, engine.Options{})
	expect(t, got, map[string]cloud.Verdict{"ENIs": cloud.Works, "address 10.0.4.9": cloud.Careful, "permissions": cloud.Unknown})
	if len(got) != 9 {
		t.Errorf("%d findings: %+v", len(got), got)
	}
}
