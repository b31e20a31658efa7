package aws

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsconf "github.com/enipool/enipool/conf/aws"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// strange is a call of a node that touches what is another cluster's.
type strange struct {
	name    string
	account bool // the policy of the account allows it
	do      func(context.Context, *Driver) error
}

// strangers are all calls that change something, of node i-1 about an ENI that enipool
// made for another node, its own ENI, and its instance.
func strangers(made, attachment, own, instance, mine string) []strange {
	one := aws.Int32(1)
	create := func(tags ...types.Tag) func(context.Context, *Driver) error {
		return func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.CreateNetworkInterface, &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String("subnet-a"),
				TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}}})
			return err
		}
	}
	node, red := types.Tag{Key: aws.String(tagNode), Value: aws.String("i-1")}, types.Tag{Key: aws.String(tagCluster), Value: aws.String("red")}
	return []strange{
		{"create with another cluster's tag", true, create(node, red)},
		{"create without the cluster's tag", true, create(node)},
		{"create without the node's tag", false, create(red)},
		{"detach", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.DetachNetworkInterface, &sdk.DetachNetworkInterfaceInput{AttachmentId: &attachment})
			return err
		}},
		{"attach to the node", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.AttachNetworkInterface, &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &made, InstanceId: aws.String("i-1"), DeviceIndex: one})
			return err
		}},
		{"attach the node's to another cluster's instance", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.AttachNetworkInterface, &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &mine, InstanceId: &instance, DeviceIndex: aws.Int32(3)})
			return err
		}},
		{"let it stay behind", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.ModifyNetworkInterfaceAttribute, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &made,
				Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: &attachment, DeleteOnTermination: aws.Bool(false)}})
			return err
		}},
		{"modify the own one", false, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.ModifyNetworkInterfaceAttribute, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &own,
				Description: &types.AttributeValue{Value: aws.String("x")}})
			return err
		}},
		{"assign", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.AssignPrivateIpAddresses, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &made, SecondaryPrivateIpAddressCount: one})
			return err
		}},
		{"assign to the own one", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.AssignPrivateIpAddresses, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &own, SecondaryPrivateIpAddressCount: one})
			return err
		}},
		{"unassign", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.UnassignPrivateIpAddresses, &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &made, PrivateIpAddresses: []string{nowhere4}})
			return err
		}},
		{"assign IPv6", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.AssignIpv6Addresses, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: &made, Ipv6AddressCount: one})
			return err
		}},
		{"unassign IPv6", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.UnassignIpv6Addresses, &sdk.UnassignIpv6AddressesInput{NetworkInterfaceId: &made, Ipv6Addresses: []string{nowhere6}})
			return err
		}},
		{"delete", true, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.DeleteNetworkInterface, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &made})
			return err
		}},
		{"delete the own one", false, func(ctx context.Context, d *Driver) error {
			_, err := changeEC2(ctx, d, &d.api.DeleteNetworkInterface, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &own})
			return err
		}},
	}
}

func TestWhatIsAnotherClustersIsRefusedByTheClustersPolicy(t *testing.T) {
	for name, p := range policies(t) {
		for _, partition := range partitions {
			r := &rights{t: t, policy: p, partition: partition}
			s := newSite(t, kind{v6: true, rights: r})
			c, _ := s.open(t, "i-1", engine.Options{Cluster: "blue"})
			must(t, s.Update(func(tx *sim.Tx) error {
				for _, n := range tx.Interfaces() {
					cluster := map[string]string{"i-1": "blue", "i-2": "red"}[n.Attachment.Instance]
					if err := tx.Tag([]string{n.ID, n.Attachment.Instance}, map[string]string{tagCluster: cluster}); err != nil {
						return err
					}
				}
				return nil
			}))
			mine, err := c.CreateInterface(t.Context(), cloud.Create{Token: "mine", Subnet: "subnet-a", V4: 1})
			must(t, err)
			r.policy = readPolicy(t, strings.ReplaceAll(awsconf.ClusterPolicy, "CLUSTER", "red")) // while the other node acts
			other, _ := s.open(t, "i-2", engine.Options{Cluster: "red"})
			theirs, err := other.CreateInterface(t.Context(), cloud.Create{Token: "theirs", Subnet: "subnet-a", V4: 1})
			must(t, err)
			list, err := other.Interfaces(t.Context())
			must(t, err)
			var attachment string
			s.View(0, func(tx *sim.Tx) {
				n, _ := tx.Interface(theirs.ID)
				attachment = n.Attachment.ID
			})
			r.policy = p
			for _, call := range strangers(theirs.ID, attachment, list[0].ID, "i-2", mine.ID) {
				refused := driver.Reason(call.do(t.Context(), c.d)) == cloud.Unauthorized
				if want := name == "of a cluster" || !call.account; refused != want {
					t.Errorf("the policy %s in %s: %s: refused %t", name, partition, call.name, refused)
				}
			}
		}
	}
}

// A leak of the cluster is found and deleted by its policy, one of another is not.
func TestTheClustersPolicyIsEnoughToSweep(t *testing.T) {
	p := policies(t)["of a cluster"]
	s := newSite(t, kind{rights: &rights{t: t, policy: p, partition: "aws"}, tags: map[string]string{tagCluster: "blue"}})
	dead, _ := s.open(t, "i-2", engine.Options{Cluster: "blue"})
	s.Endpoint.FailNext("AttachNetworkInterface", sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}})
	_, _ = dead.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "subnet-a", V4: 1})
	must(t, s.Terminate("i-2"))
	c, _ := s.open(t, "i-1", engine.Options{Cluster: "blue"})
	var deleted []string
	for end := time.Now().Add(10 * time.Second); len(deleted) == 0 && time.Now().Before(end); {
		some, err := c.Sweep(t.Context(), 0)
		must(t, err)
		deleted = append(deleted, some...)
	}
	if len(deleted) != 1 {
		t.Errorf("swept %v", deleted)
	}
}

func TestTrustPoliciesNameWhoMayTakeTheRole(t *testing.T) {
	account, err := os.ReadFile("../../../conf/kubernetes/base/account.yaml")
	must(t, err)
	who := regexp.MustCompile(`kind: ServiceAccount\nmetadata:\n  name: (\S+)\n  namespace: (\S+)\n`).FindStringSubmatch(string(account))
	if who == nil {
		t.Fatal("there is no service account in conf/kubernetes/base/account.yaml")
	}
	filled := strings.NewReplacer("PARTITION", "aws-cn", "ACCOUNT", "111122223333", "ISSUER", "oidc.example.org/id/A").Replace(awsconf.TrustServiceAccount)
	for _, tt := range []struct{ text, kind, principal, action string }{
		{awsconf.Trust, "Service", "ec2.amazonaws.com", "sts:AssumeRole"},
		{awsconf.TrustChina, "Service", "ec2.amazonaws.com.cn", "sts:AssumeRole"},
		{filled, "Federated", "arn:aws-cn:iam::111122223333:oidc-provider/oidc.example.org/id/A", "sts:AssumeRoleWithWebIdentity"},
	} {
		p := readPolicy(t, tt.text)
		if len(p.Statement) != 1 || len(p.Statement[0].Principal) != 1 || p.Statement[0].Principal[tt.kind] != tt.principal || strings.Join(p.actions(), " ") != tt.action {
			t.Errorf("the trust policy for %s is %+v", tt.principal, p)
		}
	}
	token := map[string]string{"oidc.example.org/id/A:aud": "sts.amazonaws.com", "oidc.example.org/id/A:sub": "system:serviceaccount:" + who[2] + ":" + who[1]}
	s := readPolicy(t, filled).Statement[0]
	if !s.holds(t, token) {
		t.Errorf("the agents' service account may not take the role: %+v", s.Condition)
	}
	for key := range token {
		stranger := map[string]string{}
		for k, v := range token {
			stranger[k] = v
		}
		stranger[key] += "x"
		if s.holds(t, stranger) {
			t.Errorf("who has another %s may take the role", key)
		}
	}
}

// What is to be filled in is explained, and the commands fill in all of it.
func TestThePageOfThePoliciesExplainsAllThatIsToBeFilledIn(t *testing.T) {
	page, err := os.ReadFile("../../../conf/aws/README.md")
	must(t, err)
	for name, text := range map[string]string{"policy.json": awsconf.Policy, "policy-cluster.json": awsconf.ClusterPolicy, "policy-operator.json": awsconf.OperatorPolicy, "trust.json": awsconf.Trust,
		"trust-cn.json": awsconf.TrustChina, "trust-serviceaccount.json": awsconf.TrustServiceAccount} {
		if !strings.Contains(string(page), "["+name+"]("+name+")") {
			t.Errorf("the page does not name %s", name)
		}
		for _, blank := range regexp.MustCompile(`[A-Z]{4,}`).FindAllString(text, -1) {
			if !strings.Contains(string(page), "`"+blank+"`") || !regexp.MustCompile(`sed .*s.`+blank+`.*`+name).Match(page) {
				t.Errorf("the page does not say what %s in %s is, or does not fill it in", blank, name)
			}
		}
	}
}
