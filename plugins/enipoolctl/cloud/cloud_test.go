package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// region is an EC2 on loopback with one instance, and the file of its agent to be.
type region struct {
	t        *testing.T
	account  *sim.Account
	endpoint *ec2.Endpoint
	conf     string
	metadata string
	lines    string // more of the file
}

func newRegion(t *testing.T, lines string) *region {
	t.Helper()
	r := &region{t: t, account: sim.NewAccount(sim.Options{Region: "eu-central-1", Reserve: sim.EC2Reserve, NewID: sim.EC2ID})}
	r.account.AddType(ec2.Types()...)
	r.account.AddGroup(sim.Group{ID: "sg-0123456789abcdef0", Name: "default"})
	for i, zone := range []string{"eu-central-1a", "eu-central-1b"} {
		r.must(r.account.AddSubnet(sim.Subnet{Zone: zone, ID: "subnet-" + zone[len(zone)-1:],
			V4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)}))
	}
	_, err := r.account.AddInstance(sim.Instance{ID: "i-0123456789abcdef0", Type: "m5.large", Subnet: "subnet-a"})
	r.must(err)
	r.endpoint = ec2.New(r.account, ec2.Options{Role: "node"})
	ec2, meta := httptest.NewServer(r.endpoint.Handler()), httptest.NewServer(r.endpoint.Metadata("i-0123456789abcdef0"))
	t.Cleanup(ec2.Close)
	t.Cleanup(meta.Close)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_EC2_METADATA_DISABLED"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	r.conf, r.metadata, r.lines = filepath.Join(t.TempDir(), "agent.yaml"), meta.URL, lines
	r.answers(ec2.URL)
	return r
}

// answers says where the agent's file has EC2.
func (r *region) answers(url string) {
	r.must(os.WriteFile(r.conf, fmt.Appendf(nil, "vpcCIDRs: [10.0.0.0/16]\ncloud:\n  provider: aws\n  endpoint: %s\n  metadata: %s\n%s",
		url, r.metadata, r.lines), 0o600))
}

func (r *region) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// check runs the command and returns its verdicts by what they are about.
func (r *region) check(want int) (verdicts map[string]string, table string) {
	r.t.Helper()
	var out, said bytes.Buffer
	if code := cli.Run(r.t.Context(), Command(), []string{"check", "--config", r.conf, "-o", "json"}, &out, &said); code != want {
		r.t.Fatalf("exit %d, want %d: %s%s", code, want, &out, &said)
	}
	var answer struct {
		Findings []struct{ What, Verdict string }
	}
	r.must(json.Unmarshal(out.Bytes(), &answer))
	verdicts = map[string]string{}
	for _, f := range answer.Findings {
		verdicts[f.What] = f.Verdict
	}
	out.Reset()
	if code := cli.Run(r.t.Context(), Command(), []string{"check", "--config", r.conf}, &out, &said); code != want {
		r.t.Fatalf("exit %d, want %d: %s%s", code, want, &out, &said)
	}
	return verdicts, out.String()
}

func (r *region) want(verdicts map[string]string, want string) {
	r.t.Helper()
	for line := range strings.Lines(strings.TrimSpace(want)) {
		what, verdict, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if verdicts[what] != verdict {
			r.t.Errorf("%s: %q, want %s", what, verdicts[what], verdict)
		}
	}
}

func TestCheckFindsAnInstanceThatIsReadyForAnAgent(t *testing.T) {
	r := newRegion(t, "")
	before := fmt.Sprint(r.account.Calls())
	verdicts, table := r.check(0)
	r.want(verdicts, `instance: works
		credentials: works
		clock: works
		ENIs: works
		limits: works
		subnet subnet-a: works
		security group sg-0123456789abcdef0: works
		permission ec2:CreateNetworkInterface: works
		permission ec2:DeleteNetworkInterface: works
		permission ec2:AssignPrivateIpAddresses: works
		permission ec2:UnassignPrivateIpAddresses: works`)
	for _, want := range []string{"i-0123456789abcdef0 in region eu-central-1", "3 ENIs, 27 addresses for pods; 1 of 3 ENIs used", "250 addresses are free"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if strings.Contains(table, "To do") {
		t.Errorf("something to do:\n%s", table)
	}
	r.must(r.account.Check())
	r.account.View(0, func(tx *sim.Tx) {
		if n := tx.Interfaces(); len(n) != 1 || len(n[0].V4) > 0 {
			t.Errorf("the check changed something: %+v after calls %s", n, before)
		}
	})
}

func TestCheckSaysWhatIsBrokenAndWhatToDo(t *testing.T) {
	r := newRegion(t, "  subnets: [subnet-a, subnet-b, subnet-0]\n  securityGroups: [sg-00000000000000000]\n")
	r.must(r.account.LeaveFree("subnet-a", 0))
	r.endpoint.Allow([]string{"ec2:Describe*", "ec2:CreateNetworkInterface", "ec2:AssignPrivateIpAddresses"})
	verdicts, table := r.check(1)
	r.want(verdicts, `subnet subnet-a: broken
		subnet subnet-b: works
		subnet subnet-0: broken
		security group sg-00000000000000000: broken
		permission ec2:CreateNetworkInterface: works
		permission ec2:AttachNetworkInterface: unknown
		permission ec2:UnassignPrivateIpAddresses: broken`)
	if !strings.Contains(table, "To do") || !strings.Contains(table, "conf/aws/policy.json") {
		t.Errorf("nothing to do in\n%s", table)
	}
}

func TestCheckWithoutCredentialsSaysSo(t *testing.T) {
	r := newRegion(t, "")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDNOBODY")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not-a-key-of-anybody")
	verdicts, table := r.check(1)
	r.want(verdicts, "credentials: broken")
	if strings.Contains(table, "not-a-key-of-anybody") {
		t.Errorf("the secret is shown:\n%s", table)
	}
}
