package bce

import (
	"cmp"
	"context"
	_ "embed"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// Kind is a kind of instance. Kinds differ in which ENIs may have pods' addresses. It is
// driver.Self's Type.
type Kind string

// The kinds. The metadata service may tell other names: ehc counts as EBC, all others as BCC.
const (
	BCC Kind = "bcc" // a virtual machine: ENIs
	BBC Kind = "bbc" // bare metal: its primary ENI alone
	EBC Kind = "ebc" // bare metal: ENIs where its quota is more than 0, else its primary alone
)

// Options are what a Driver needs to know. For an empty field that has no default here, the
// driver asks the metadata service.
type Options struct {
	Region   string // such as "bj"
	Endpoint string // URL of the API, "" is https:// with the region's host; http:// on loopback alone
	Metadata string // URL of the metadata service, "" is http://169.254.169.254

	Instance string
	Kind     Kind
	VPC      string
	Zone     string // as the metadata service names it, "zoneA", or as subnets do, "cn-bj-a"

	// CrossSubnet: the account is on Baidu's white list for addresses of other subnets. No request
	// tells that: people say so.
	CrossSubnet bool

	Timeout time.Duration // of one request, 0 is 20 s
}

// Driver is the cloud as this caller sees it.
type Driver struct {
	o     Options
	keys  *keyring
	meta  metadata
	base  http.RoundTripper
	pause time.Duration // before the first repetition of a read that was refused for its rate
	clock wire.Clock

	mu   sync.Mutex
	self *driver.Self
}

var (
	_ driver.Driver  = (*Driver)(nil)
	_ driver.Clocked = (*Driver)(nil)
	_ cloud.Believer = (*Driver)(nil)
)

//go:embed DESIGN.md
var design string

// Beliefs implements cloud.Believer.
func (*Driver) Beliefs() []cloud.Belief { return cloud.ReadBeliefs(design) }

// New returns a Driver. It makes no call.
func New(o Options) (*Driver, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	o.Endpoint = strings.TrimSuffix(o.Endpoint, "/")
	d := &Driver{o: o, meta: newMetadata(o.Metadata), base: wire.Transport(), pause: usualPause}
	d.keys = &keyring{source: usualSource(d.meta)}
	return d, nil
}

// perCall is the most addresses that a request adds or deletes.
const perCall = 10

// usualPause is the pause before the first repetition of a read.
const usualPause = 500 * time.Millisecond

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	t := Traits()
	t.CrossSubnet = d.o.CrossSubnet
	return t
}

// Traits returns what is peculiar to the cloud, for an account that is on no white list. Simulations use it too, which have no Driver.
func Traits() driver.Traits {
	// Why each is as it is: the table of differences in DESIGN.md.
	return driver.Traits{
		Name: "Baidu",
		Keys: driver.Keys{Subnet: "availableIp", Room: "cloud.maxIPsPerENI", Policy: "conf/baidu/policy.json",
			Self:    "cloud.region, cloud.instance, cloud.kind, cloud.vpc and cloud.zone",
			Keyring: "BCE_ACCESS_KEY_ID and BCE_SECRET_ACCESS_KEY in the agent's environment"},
		NoIndex:      true,
		MarksV6:      true,
		AssignTokens: true,
		Exact:        true,
		Keeps:        true,
		PerCall:      perCall,
		PageSize:     1000,
		HidesPrimary: true,
		Zone:         shortZone,
		Requests:     methodActions(),
		Retries:      readRetries(usualPause),
		Buckets:      accountBuckets(),
		Times:        driver.Times{Poll: 500 * time.Millisecond, Slow: 3 * time.Second, Settle: 10 * time.Second, Wait: 2 * time.Minute},
	}
}

// shortZone returns the one letter that both ways of writing a zone have: "a" of "zoneA" and of
// "cn-bj-a".
func shortZone(zone string) string {
	zone = strings.ToLower(zone)
	if letter, ok := strings.CutPrefix(zone, "zone"); ok {
		return letter
	}
	return zone[strings.LastIndexByte(zone, '-')+1:]
}

// Skew implements driver.Clocked.
func (d *Driver) Skew() (ahead time.Duration, known bool) { return d.clock.Skew() }

// Bind implements driver.Driver. It does nothing: ENIs outlive their instance in this cloud.
func (*Driver) Bind(context.Context, string, string) error { return nil }

// Shapes implements driver.Driver. The cloud only tells the quota of an existing instance.
func (*Driver) Shapes(context.Context, []string) (map[string]driver.Shape, error) {
	return nil, &driver.Error{Kind: cloud.ErrForbidden, Detail: "the limits of instances are told, not of types"}
}
