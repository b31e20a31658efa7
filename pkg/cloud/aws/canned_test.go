package aws

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/engine"
)

// canned is EC2 as an HTTP client: it answers each action with what is prepared.
type canned struct {
	mu      sync.Mutex
	answers map[string]func(form url.Values) (status int, body string)
	asked   []url.Values
}

func (c *canned) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, form)
	status, text := http.StatusBadRequest, refusal("InvalidAction", "nothing is prepared for "+form.Get("Action"))
	if answer := c.answers[form.Get("Action")]; answer != nil {
		status, text = answer(form)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// says prepares the same good answer for all calls of an action.
func (c *canned) says(action, body string) {
	c.answers[action] = func(url.Values) (int, string) { return http.StatusOK, body }
}

// count tells how often an action was called.
func (c *canned) count(action string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, form := range c.asked {
		if form.Get("Action") == action {
			n++
		}
	}
	return n
}

func refusal(code, message string) string {
	return fmt.Sprintf("<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r</RequestID></Response>", code, message)
}

// The credentials of the tests; nothing may ever print them.
const (
	testKey    = "AKIDTESTEXAMPLE0001"
	testSecret = "qd8mBzXtestSecretWord/+9"
	testToken  = "testSessionTokenWord"
)

// newCanned returns a client of instance i-1 whose calls all are answered by the canned EC2.
func newCanned(t *testing.T, o engine.Options) (*node, *canned) {
	t.Helper()
	return newCannedOf(t, "i-1", o)
}

// newCannedOf is newCanned of another instance.
func newCannedOf(t *testing.T, instance string, o engine.Options) (*node, *canned) {
	t.Helper()
	bare(t)
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	t.Setenv("AWS_SESSION_TOKEN", testToken)
	c := newNode(New(Options{Instance: instance, Region: "eu-test-1", Log: o.Log}), o)
	ec2 := &canned{answers: map[string]func(url.Values) (int, string){}}
	c.d.http = ec2
	return c, ec2
}

// reference returns a response that EC2's API reference publishes.
func reference(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/reference/" + name + ".xml")
	must(t, err)
	return string(text)
}

// enisXML is an answer with these ENIs, as eniXML makes them.
func enisXML(enis ...string) string {
	return "<DescribeNetworkInterfacesResponse><networkInterfaceSet>" + strings.Join(enis, "") + "</networkInterfaceSet></DescribeNetworkInterfacesResponse>"
}

// eniXML is an ENI at a device index of instance i-1, in subnet-a. Of the words of
// its text those that stand in changes are replaced.
func eniXML(id string, index int, primary string, changes ...string) string {
	text := fmt.Sprintf(`<item>
<networkInterfaceId>%[1]s</networkInterfaceId><subnetId>subnet-a</subnetId><vpcId>vpc-1</vpcId><availabilityZone>eu-test-1a</availabilityZone>
<status>in-use</status><macAddress>02:00:00:00:00:0%[2]d</macAddress><privateIpAddress>%[3]s</privateIpAddress><interfaceType>interface</interfaceType>
<groupSet><item><groupId>sg-1</groupId></item></groupSet>
<attachment><attachmentId>eni-attach-%[2]d</attachmentId><instanceId>i-1</instanceId><deviceIndex>%[2]d</deviceIndex><status>attached</status>
<attachTime>2026-01-02T03:04:05.000Z</attachTime><deleteOnTermination>true</deleteOnTermination></attachment>
<tagSet></tagSet>
<privateIpAddressesSet><item><privateIpAddress>%[3]s</privateIpAddress><primary>true</primary></item>
<item><privateIpAddress>10.0.0.1%[2]d0</privateIpAddress><primary>false</primary></item></privateIpAddressesSet>
</item>`, id, index, primary)
	return strings.NewReplacer(changes...).Replace(text)
}

const subnetXML = `<DescribeSubnetsResponse><subnetSet><item><subnetId>subnet-a</subnetId><state>available</state><vpcId>vpc-1</vpcId>
<cidrBlock>10.0.0.0/24</cidrBlock><availableIpAddressCount>200</availableIpAddressCount><availabilityZone>eu-test-1a</availabilityZone>
<ipv6CidrBlockAssociationSet><item><ipv6CidrBlock>2001:db8::/64</ipv6CidrBlock><ipv6CidrBlockState><state>associated</state></ipv6CidrBlockState></item></ipv6CidrBlockAssociationSet>
</item></subnetSet></DescribeSubnetsResponse>`

const typeXML = `<DescribeInstanceTypesResponse><instanceTypeSet><item><instanceType>test.large</instanceType><hypervisor>nitro</hypervisor>
<networkInfo><maximumNetworkInterfaces>4</maximumNetworkInterfaces><ipv4AddressesPerInterface>8</ipv4AddressesPerInterface>
<ipv6AddressesPerInterface>8</ipv6AddressesPerInterface><ipv6Supported>true</ipv6Supported></networkInfo></item></instanceTypeSet></DescribeInstanceTypesResponse>`

const instanceXML = `<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId><instanceType>test.large</instanceType></item></instancesSet></item></reservationSet></DescribeInstancesResponse>`
