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
	"github.com/enipool/enipool/pkg/cloud/sim/api/ec2"
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
	Statement []struct {
		Sid, Effect string
		Principal   map[string]string
		Action      texts
		Resource    texts
		Condition   map[string]map[string]string
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

// called returns the actions that an agent calls: methods of an EC2 client in a field
// called api. Check looks at more, and says so where it may not.
func called(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || slices.Contains([]string{"check.go", "permissions.go"}, name) {
			continue
		}
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
	list = append(list, "ec2:CreateTags") // that is what tags at a creation need
	slices.Sort(list)
	return slices.Compact(list)
}

func TestThePolicyAllowsWhatTheCodeCallsAndNoMore(t *testing.T) {
	p := readPolicy(t, awsconf.Policy)
	if diff := cmp.Diff(called(t), p.actions()); diff != "" {
		t.Errorf("(-called +allowed):\n%s", diff)
	}
	for _, s := range p.Statement {
		wide := slices.Contains(s.Resource, "*")
		for _, action := range s.Action {
			if wide != strings.HasPrefix(action, "ec2:Describe") {
				t.Errorf("%s: %s on %v", s.Sid, action, s.Resource)
			}
		}
		if s.Effect != "Allow" || len(s.Resource) == 0 {
			t.Errorf("%s: %s on %v", s.Sid, s.Effect, s.Resource)
		}
	}
	trust := readPolicy(t, awsconf.Trust)
	if len(trust.Statement) != 1 || trust.Statement[0].Principal["Service"] != "ec2.amazonaws.com" || !slices.Equal(trust.actions(), []string{"sts:AssumeRole"}) {
		t.Errorf("the trust policy is %+v", trust)
	}
}

func TestContractWithTheLeastPolicy(t *testing.T) {
	allowed := readPolicy(t, awsconf.Policy).actions()
	contract(t, kind{v6: true, endpoint: ec2.Options{Allowed: allowed}}, Options{IPv6: true, Cluster: "c"})
}
