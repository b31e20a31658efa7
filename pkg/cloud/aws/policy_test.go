package aws

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	awsconf "github.com/enipool/enipool/conf/aws"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/google/go-cmp/cmp"
)

// texts is a string of a policy, or a list of them.
type texts []string

func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid, Effect string
	Principal   map[string]string
	Action      texts
	Resource    texts
	Condition   map[string]map[string]string
}

// partitions are those of docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
var partitions = []string{"aws", "aws-cn", "aws-us-gov"}

// policies are what a role may do, for the cluster "blue" where it is about one.
func policies(t *testing.T) map[string]policy {
	return map[string]policy{
		"of the account": readPolicy(t, awsconf.Policy),
		"of a cluster":   readPolicy(t, strings.ReplaceAll(awsconf.ClusterPolicy, "CLUSTER", "blue")),
	}
}

func readPolicy(t *testing.T, text string) policy {
	t.Helper()
	var p policy
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	must(t, d.Decode(&p))
	if p.Version != "2012-10-17" {
		t.Errorf("the policy's version is %q", p.Version)
	}
	return p
}

func (p policy) actions() (list []string) {
	for _, s := range p.Statement {
		list = append(list, s.Action...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// called returns the actions that an agent calls. Probe looks at more, and says so where it may
// not; no agent reserves ranges.
func called(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	files = slices.DeleteFunc(files, func(name string) bool {
		return strings.HasSuffix(name, "_test.go") || name == "probe.go" || name == reserving
	})
	list = append(calledIn(t, files...), "ec2:CreateTags") // that is what tags at a creation need
	slices.Sort(list)
	return slices.Compact(list)
}

// reserving is the file that reserves ranges.
const reserving = "reservations.go"

// calledIn returns the actions that files call: methods of an EC2 client in a field called api.
func calledIn(t *testing.T, files ...string) (list []string) {
	t.Helper()
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			method, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := method.X.(*ast.SelectorExpr); ok && of.Sel.Name == "api" {
				list = append(list, "ec2:"+method.Sel.Name)
			}
			return true
		})
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func TestThePoliciesAllowWhatTheCodeCallsAndNoMore(t *testing.T) {
	for name, p := range policies(t) {
		if diff := cmp.Diff(called(t), p.actions()); diff != "" {
			t.Errorf("%s (-called +allowed):\n%s", name, diff)
		}
		for _, s := range p.Statement {
			wide := slices.Contains(s.Resource, "*")
			for _, action := range s.Action {
				if wide != strings.HasPrefix(action, "ec2:Describe") {
					t.Errorf("%s: %s: %s on %v", name, s.Sid, action, s.Resource)
				}
			}
			if s.Effect != "Allow" || len(s.Resource) == 0 {
				t.Errorf("%s: %s: %s on %v", name, s.Sid, s.Effect, s.Resource)
			}
		}
	}
}

func TestContractWithThePoliciesInEveryPartition(t *testing.T) {
	for name, p := range policies(t) {
		for _, partition := range partitions {
			t.Run(name+" in "+partition, func(t *testing.T) {
				r := &rights{t: t, policy: p, partition: partition}
				k := kind{v6: true, rights: r, tags: map[string]string{tagCluster: "blue"}}
				cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
					return subject(t, k, engine.Options{IPv6: true, Cluster: "blue"}, cloudtest.Dropped)
				})
				if r.asked.Load() == 0 {
					t.Error("nobody asked whether a call is allowed")
				}
			})
		}
	}
}

func TestCheckFindsNoRightMissingWithThePolicies(t *testing.T) {
	for name, p := range policies(t) {
		s := newSite(t, kind{v6: true, rights: &rights{t: t, policy: p, partition: "aws"}, tags: map[string]string{tagCluster: "blue"}})
		c, _ := s.open(t, "i-1", engine.Options{IPv6: true, Cluster: "blue"})
		for range 2 {
			for _, f := range c.Check(t.Context()) {
				if f.Verdict == cloud.Broken {
					t.Errorf("%s: %+v", name, f)
				}
			}
			_, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1})
			must(t, err)
		}
	}
}

// Groups that the configuration names later are given to ENIs that are there already.
func TestThePoliciesAllowOtherGroups(t *testing.T) {
	for name, p := range policies(t) {
		s := newSite(t, kind{rights: &rights{t: t, policy: p, partition: "aws-cn"}, tags: map[string]string{tagCluster: "blue"}})
		s.AddGroup(sim.Group{ID: "sg-2", Name: "pods"})
		before, _ := s.open(t, "i-1", engine.Options{Cluster: "blue"})
		i, err := before.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1})
		must(t, err)
		after, _ := s.open(t, "i-1", engine.Options{Cluster: "blue", SecurityGroups: []string{"sg-2"}})
		if changed, err := after.Upkeep(t.Context()); err != nil || !slices.Equal(changed, []string{i.ID}) {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
		s.View(0, func(tx *sim.Tx) {
			if n, _ := tx.Interface(i.ID); !slices.Equal(n.Groups, []string{"sg-2"}) {
				t.Errorf("%s: %+v", name, n)
			}
		})
	}
}
