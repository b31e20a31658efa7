package aws

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	awsconf "github.com/enipool/enipool/conf/aws"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/google/go-cmp/cmp"
)

// operatorRights are those of the operator of a cluster's role.
func operatorRights(t *testing.T, cluster, partition string) *rights {
	t.Helper()
	return &rights{t: t, policy: readPolicy(t, strings.ReplaceAll(awsconf.OperatorPolicy, "CLUSTER", cluster)), partition: partition}
}

// region returns what an operator of the cluster calls, on the instance i-1.
func (s *site) region(t *testing.T, o engine.Options) *engine.Region {
	t.Helper()
	d := New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata("i-1"))})
	quicken(d)
	o.Times = driver.Times{Poll: time.Millisecond, Slow: 100 * time.Millisecond, Usual: 2 * time.Millisecond, Settle: 300 * time.Millisecond}
	return engine.NewRegion(d, o)
}

func TestTheOperatorsPolicyAllowsWhatTheDriverCallsAndNoMore(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") || name == "probe.go" })
	all := append(calledIn(t, files...), "ec2:CreateTags") // that is what tags at a creation need
	slices.Sort(all)
	p := readPolicy(t, awsconf.OperatorPolicy)
	if diff := cmp.Diff(all, p.actions()); diff != "" {
		t.Errorf("(-called +allowed):\n%s", diff)
	}
	for _, s := range p.Statement {
		if s.Effect != "Allow" || len(s.Resource) == 0 {
			t.Errorf("%s: %s on %v", s.Sid, s.Effect, s.Resource)
		}
		// EC2 knows no resource, and so no tags, of what only shows things and of reserved ranges.
		for _, action := range s.Action {
			if wide := strings.HasPrefix(action, "ec2:Describe") || strings.HasSuffix(action, "SubnetCidrReservation") || strings.HasSuffix(action, "SubnetCidrReservations"); wide != slices.Contains(s.Resource, "*") {
				t.Errorf("%s: %s on %v", s.Sid, action, s.Resource)
			}
		}
		narrow := strings.Contains(strings.Join(s.Resource, " "), "network-interface/") || strings.Contains(strings.Join(s.Resource, " "), "instance/")
		if narrow && len(s.Condition["StringEquals"]) == 0 {
			t.Errorf("%s goes beyond the cluster", s.Sid)
		}
	}
	for name, node := range policies(t) {
		for _, action := range node.actions() {
			if strings.Contains(action, "SubnetCidrReservation") {
				t.Errorf("%s: a node may %s", name, action)
			}
		}
	}
}

// All that a Region does works with the policy, in every partition, and there is nothing in the policy that it does without.
func TestContractOfARegionWithTheOperatorsPolicy(t *testing.T) {
	used := map[use]bool{}
	note := func(r *rights) {
		r.used.Range(func(u, _ any) bool { used[u.(use)] = true; return true })
	}
	for i, partition := range partitions {
		v6 := i == 0 // IPv6 has actions of its own
		t.Run(partition, func(t *testing.T) {
			cloudtest.RegionContract(t, func(t *testing.T) cloudtest.RegionSubject {
				r := operatorRights(t, "blue", partition)
				t.Cleanup(func() { note(r) })
				s := newSite(t, kind{v6: v6, rights: r, tags: map[string]string{tagCluster: "blue"}})
				o := engine.Options{IPv6: v6, Cluster: "blue", Subnets: []string{"subnet-a", "subnet-b"}}
				return cloudtest.RegionSubject{Region: s.region(t, o), Instances: []string{"i-1", "i-2"}, Nobody: "i-0123456789abcdef0",
					Type: testType.Name, Types: func() int { return s.Calls()["DescribeInstanceTypes"] }, Subnets: o.Subnets, Looks: func() int { return s.Calls()[describeENIs] }, Check: s.Check, Stop: s.Stop}
			})
		})
	}
	r := operatorRights(t, "blue", "aws")
	giveBack(t, r)
	giveOtherGroups(t, r)
	note(r)
	for _, s := range readPolicy(t, awsconf.OperatorPolicy).Statement {
		for _, action := range s.Action {
			if !used[use{s.Sid, action}] {
				t.Errorf("%s: nobody needed %s", s.Sid, action)
			}
		}
	}
}

// giveBack has an operator make an ENI and give all of it back: what a Region does by a Node.
func giveBack(t *testing.T, r *rights) {
	t.Helper()
	s := newSite(t, kind{v6: true, rights: r, tags: map[string]string{tagCluster: "blue"}})
	node := s.region(t, engine.Options{IPv6: true, Cluster: "blue", Subnets: []string{"subnet-a"}}).Node(cloud.Instance{ID: "i-2"})
	made, err := node.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1, V6: 1})
	must(t, err)
	must(t, node.UnassignAddresses(t.Context(), made.ID, made.Addresses))
	must(t, node.DeleteInterface(t.Context(), made.ID))
}

// giveOtherGroups has an operator whose configuration names other security groups give them to an ENI that is there.
func giveOtherGroups(t *testing.T, r *rights) {
	t.Helper()
	s := newSite(t, kind{rights: r, tags: map[string]string{tagCluster: "blue"}})
	s.AddGroup(sim.Group{ID: "sg-2", Name: "pods"})
	o := engine.Options{Cluster: "blue", Subnets: []string{"subnet-a"}}
	made, err := s.region(t, o).Node(cloud.Instance{ID: "i-2"}).CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1})
	must(t, err)
	o.SecurityGroups = []string{"sg-2"}
	after := s.region(t, o)
	after.Node(cloud.Instance{ID: "i-2"})
	_, err = after.Look(t.Context(), []string{"i-2"})
	must(t, err)
	if out := after.OutOfStep("i-2"); out[made.ID] != "SetGroups" {
		t.Errorf("out of step: %v", out)
	}
	must(t, after.Upkeep(t.Context(), "i-2", made.ID))
	if out := after.OutOfStep("i-2"); len(out) != 0 {
		t.Errorf("still out of step: %v", out)
	}
}

// A check tells which of the operator's rights are missing, and that only reserved ranges need those for them.
func TestACheckTellsWhichOfTheOperatorsRightsAreMissing(t *testing.T) {
	says := func(missing ...string) map[string]cloud.Finding {
		r := operatorRights(t, "blue", "aws")
		for i := range r.policy.Statement {
			s := &r.policy.Statement[i]
			s.Action = slices.DeleteFunc(s.Action, func(a string) bool { return slices.Contains(missing, a) })
		}
		site := newSite(t, kind{rights: r, tags: map[string]string{tagCluster: "blue"}})
		found := map[string]cloud.Finding{}
		for _, f := range site.region(t, engine.Options{Cluster: "blue", Subnets: []string{"subnet-a"}}).Check(t.Context()) {
			found[f.What] = f
		}
		return found
	}
	reservations := []string{"ec2:GetSubnetCidrReservations", "ec2:CreateSubnetCidrReservation", "ec2:DeleteSubnetCidrReservation"}
	all := says()
	without := says(append(reservations, "ec2:AssignPrivateIpAddresses")...)
	for _, action := range reservations {
		if f := all["permission "+action]; f.Verdict != cloud.Works {
			t.Errorf("with all rights: %s: %+v", action, f)
		}
		if f := without["permission "+action]; f.Verdict != cloud.Unknown || !strings.Contains(f.Detail, "`reserve`") {
			t.Errorf("without: %s: %+v", action, f)
		}
	}
	if f := without["permission ec2:AssignPrivateIpAddresses"]; f.Verdict != cloud.Broken || !strings.Contains(f.Fix, "policy-operator.json") {
		t.Errorf("without AssignPrivateIpAddresses: %+v", f)
	}
}

// A leak of the cluster is found and deleted by the operator's policy, and a check finds nothing missing.
func TestTheOperatorsPolicyIsEnoughToSweepAndToCheck(t *testing.T) {
	s := newSite(t, kind{v6: true, rights: operatorRights(t, "blue", "aws"), tags: map[string]string{tagCluster: "blue"}})
	region := s.region(t, engine.Options{IPv6: true, Cluster: "blue", Subnets: []string{"subnet-a"}})
	for _, f := range region.Check(t.Context()) {
		if f.Verdict == cloud.Broken {
			t.Errorf("%+v", f)
		}
	}
	s.Endpoint.FailNext("AttachNetworkInterface", sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}})
	_, _ = region.Node(cloud.Instance{ID: "i-2"}).CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1})
	must(t, s.Terminate("i-2"))
	var deleted []string
	for end := time.Now().Add(10 * time.Second); len(deleted) == 0 && time.Now().Before(end); {
		some, _, err := region.Sweep(t.Context(), 0)
		must(t, err)
		deleted = append(deleted, some...)
	}
	if len(deleted) != 1 {
		t.Errorf("swept %v", deleted)
	}
}

// What is another cluster's is refused to the operator.
func TestTheOperatorsPolicyEndsAtTheCluster(t *testing.T) {
	r := operatorRights(t, "blue", "aws")
	s := newSite(t, kind{v6: true, rights: r, tags: map[string]string{tagCluster: "blue"}})
	must(t, s.Update(func(tx *sim.Tx) error {
		for _, n := range tx.Interfaces() {
			if n.Attachment.Instance == "i-2" {
				must(t, tx.Tag([]string{n.ID, "i-2"}, map[string]string{tagCluster: "red"}))
			}
		}
		return nil
	}))
	o := engine.Options{Cluster: "blue", Subnets: []string{"subnet-a"}}
	mine, err := s.region(t, o).Node(cloud.Instance{ID: "i-1"}).CreateInterface(t.Context(), cloud.Create{Token: "mine", Subnet: "subnet-a", V4: 1})
	must(t, err)
	r.policy = operatorRights(t, "red", "aws").policy // while the other operator acts
	o.Cluster = "red"
	other := s.region(t, o).Node(cloud.Instance{ID: "i-2"})
	theirs, err := other.CreateInterface(t.Context(), cloud.Create{Token: "theirs", Subnet: "subnet-a", V4: 1})
	must(t, err)
	list, err := other.Interfaces(t.Context())
	must(t, err)
	var attachment string
	s.View(0, func(tx *sim.Tx) {
		n, _ := tx.Interface(theirs.ID)
		attachment = n.Attachment.ID
	})
	r.policy = operatorRights(t, "blue", "aws").policy
	c, _ := s.open(t, "i-1", engine.Options{Cluster: "blue"})
	for _, call := range strangers(theirs.ID, attachment, list[0].ID, "i-2", mine.ID) {
		if err := call.do(t.Context(), c.d); driver.Reason(err) != cloud.Unauthorized {
			t.Errorf("%s: %v", call.name, err)
		}
	}
}

// The page says how the agents' trust policy becomes that of the operator's service account.
func TestThePageNamesTheOperatorsServiceAccount(t *testing.T) {
	page, err := os.ReadFile("../../../conf/aws/README.md")
	must(t, err)
	account, err := os.ReadFile("../../../conf/kubernetes/operator/account.yaml")
	must(t, err)
	const agents, operators = "enipool-agent", "enipool-operator"
	if !strings.Contains(string(page), "`s|"+agents+"|"+operators+"|`") || strings.Count(awsconf.TrustServiceAccount, ":"+agents+"\"") != 1 {
		t.Error("the page does not say how the trust policy becomes the operator's")
	}
	if !strings.Contains(string(account), "kind: ServiceAccount\nmetadata:\n  name: "+operators+"\n  namespace: kube-system\n") {
		t.Errorf("the operator's service account is not %s in kube-system", operators)
	}
}
