package cloud

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/test/fakecloud/bce"
)

// Each failure of the cloud that a newcomer meets, what the check says of it, and what to do.
func TestCheckNamesWhatFailedAndWhatToSet(t *testing.T) {
	aws := func(lines string, do func(*region)) func(*testing.T) string {
		return func(t *testing.T) string {
			r := newRegion(t, lines)
			if do != nil {
				do(r)
			}
			return r.conf
		}
	}
	for name, tt := range map[string]struct {
		conf func(*testing.T) string
		code int
		want []string
	}{
		"EC2, metadata that refuses": {aws("", refuseEC2("Metadata", sim.Forbidden)), 1, []string{
			"instance broken", "without a metadata service set cloud.instance and cloud.region in agent.yaml",
			"instance: run this on the instance that will be the node; where no metadata service answers, set cloud.instance and cloud.region"}},
		"EC2, no credentials": {aws("  instance: i-0123456789abcdef0\n  region: eu-central-1\n", refuseEC2("Metadata", sim.NoSuchResource)), 1, []string{
			"credentials broken", "not sent, without credentials: no EC2 IMDS role found", "role with conf/aws/policy.json, or set AWS_ACCESS_KEY_ID"}},
		"EC2, credentials that have run out": {aws("", func(r *region) {
			r.endpoint.FailNext("DescribeNetworkInterfaces", sim.Fault{Err: &sim.Error{Code: "RequestExpired", Status: 400, Detail: "Request has expired."}})
		}), 1, []string{"clock works", "credentials broken", "renew the temporary credentials"}},
		"EC2, an instance of another region": {aws("  instance: i-00000000000000000\n  region: eu-central-1\n", nil), 1, []string{
			"ENIs broken", "ENIs: correct cloud.instance and cloud.region in agent.yaml"}},
		"EC2, subnets may not be read": {aws("", refuseEC2("DescribeSubnets", sim.Forbidden)), 1, []string{
			"credentials works", "permission ec2:DescribeSubnets broken", "permission ec2:DescribeSubnets: allow it as in conf/aws/policy.json"}},
		"EC2, types may not be read": {aws("", refuseEC2("DescribeInstanceTypes", sim.Forbidden)), 0, []string{
			"limits careful", "enipool's own numbers, for EC2 did not tell: forbidden: ", "(ec2:DescribeInstanceTypes)", "of the instance type: pool.maxAllocateENI and pool.maxIPsPerENI lower them"}},
		"EC2, a type that EC2 does not know": {aws("", refuseEC2("DescribeInstanceTypes", sim.NoSuchType)), 1, []string{
			"limits broken", "InvalidInstanceType", "limits: correct cloud.instance and cloud.region in agent.yaml"}},
		"EC2, a region that is not the endpoint's": {aws("  region: us-west-2\n", nil), 1, []string{
			"credentials broken", "EC2 answers the same where cloud.endpoint is not in region us-west-2"}},
		"EC2, a subnet that is not there": {aws("  subnets: [subnet-0]\n", nil), 1, []string{
			"subnet subnet-0 broken", "subnet subnet-0: correct cloud.subnets", "subnets: name one of the node's zone"}},
		"EC2, a security group that is not there": {aws("  securityGroups: [sg-00000000000000000]\n", nil), 1, []string{
			"security group sg-00000000000000000 broken", "security group sg-00000000000000000: correct cloud.securityGroups"}},
		"EC2, a strategy of an older release": {aws("pool:\n  strategy: reactive\n", nil), 0, []string{
			"agent.yaml careful", "goes on with equation", "agent.yaml: change the key before the next release is installed"}},
		"EC2, a dry run too many": {aws("", refuseEC2("DeleteNetworkInterface", sim.Throttled)), 2, []string{
			"permission ec2:DeleteNetworkInterface unasked", "calls: permission ec2:DeleteNetworkInterface. Run this again in 60 s."}},
		"EC2, a dry run without an answer": {aws("", func(r *region) { r.account.FailNext("DeleteNetworkInterface", sim.Fault{Answer: sim.Lost}) }), 1, []string{
			"permission ec2:DeleteNetworkInterface broken", "no answer from http://127.0.0.1:", "a longer --timeout"}},
		"EC2, a page of a proxy": {aws("", func(r *region) { r.answers(page(t)) }), 1, []string{
			"API broken", `HTTP 403 Forbidden from "squid/5.7"`, "NO_PROXY", "cloud.endpoint"}},
		"Baidu, a page of a proxy": {baidu("  endpoint: "+page(t)+"\n", bce.Options{Role: true}, nil), 1, []string{
			"API broken", `HTTP 403 Forbidden from "squid/5.7"`, "NO_PROXY", "cloud.endpoint"}},
		"Baidu, metadata that fails": {baidu("", bce.Options{Role: true}, refuseBCE("Metadata", sim.Unavailable)), 1, []string{
			"instance broken", "without a metadata service set cloud.region, cloud.instance, cloud.kind, cloud.vpc and cloud.zone in agent.yaml"}},
		"Baidu, no role": {baidu("", bce.Options{Keys: map[string]string{"a": "b"}}, nil), 1, []string{
			"instance works", "credentials broken", "role with conf/baidu/policy.json, or set BCE_ACCESS_KEY_ID"}},
		"Baidu, an endpoint that is away": {baidu("  endpoint: http://127.0.0.1:1\n", bce.Options{Role: true}, nil), 1, []string{
			"API broken", "cloud.region and cloud.endpoint in agent.yaml say where it is"}},
		"Baidu, ENIs may not be listed": {baidu("", bce.Options{Role: true, Denied: []string{"ListEni"}}, nil), 1, []string{
			"permission GET /v1/eni broken", "permission GET /v1/eni: allow it as in conf/baidu/policy.json"}},
		"Baidu, no quota is told": {baidu("", bce.Options{Role: true, NoQuota: true}, nil), 0, []string{
			"limits careful", "enipool's own numbers, for Baidu did not tell: it says that the instance has a quota of 0 ENIs"}},
		"Baidu, all is well": {baidu("", bce.Options{Role: true}, nil), 0, []string{
			"limits works", "addresses of an ENI by enipool's own rule, which cloud.maxIPsPerENI corrects"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := tt.conf(t)
			var out, said bytes.Buffer
			if code := cli.Run(t.Context(), Command(), []string{"check", "--config", conf}, &out, &said); code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			text := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s%s", want, &out, &said)
				}
			}
		})
	}
}

// page is where a proxy's page answers.
func page(t *testing.T) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "squid/5.7")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<html><h1>Access Denied</h1></html>"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// many are as many faults as all tries of a call take.
func many(reason sim.Reason) (list []sim.Fault) {
	for range 40 {
		list = append(list, sim.Fault{Err: &sim.Error{Reason: reason}})
	}
	return list
}

func refuseEC2(action string, reason sim.Reason) func(*region) {
	return func(r *region) { r.account.FailNext(action, many(reason)...) }
}

func refuseBCE(action string, reason sim.Reason) func(*sim.Account) {
	return func(a *sim.Account) { a.FailNext(action, many(reason)...) }
}

// baidu is a BCE on loopback with one instance, and the file of its agent to be.
func baidu(lines string, o bce.Options, do func(*sim.Account)) func(*testing.T) string {
	return func(t *testing.T) string {
		a := sim.NewAccount(sim.Options{Region: "bj", Reserve: bce.Reserve, NewID: bce.NewID})
		a.AddType(bce.Types()...)
		a.AddGroup(sim.Group{ID: "g-1", Name: "default"})
		err := a.AddSubnet(sim.Subnet{Zone: "cn-bj-a", ID: "sbn-a", V4: netip.MustParsePrefix("10.0.0.0/24")})
		if err == nil {
			_, err = a.AddInstance(sim.Instance{ID: "i-abcd", Type: "bcc.g5.c4m16", Subnet: "sbn-a", Launched: time.Now()})
		}
		if err != nil {
			t.Fatal(err)
		}
		e := bce.New(a, o)
		api, meta := httptest.NewServer(e.Handler()), httptest.NewServer(e.Metadata("i-abcd"))
		t.Cleanup(api.Close)
		t.Cleanup(meta.Close)
		for _, name := range []string{"BCE_ACCESS_KEY_ID", "BCE_SECRET_ACCESS_KEY"} {
			t.Setenv(name, "")
		}
		t.Setenv("HOME", t.TempDir())
		if do != nil {
			do(a)
		}
		if !strings.Contains(lines, "endpoint:") {
			lines += "  endpoint: " + api.URL + "\n"
		}
		conf := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(conf, fmt.Appendf(nil, "vpcCIDRs: [10.0.0.0/16]\ncloud:\n  provider: baidu\n  metadata: %s\n%s", meta.URL, lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return conf
	}
}
