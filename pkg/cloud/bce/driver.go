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

// Kind is a kind of instance: they differ in where their addresses may be. It is what
// driver.Self has as Type.
type Kind string

// The kinds. Of other names that the metadata service may tell ehc counts as EBC, and all
// others as BCC.
const (
	BCC Kind = "bcc" // a virtual machine: ENIs
	BBC Kind = "bbc" // bare metal: its primary ENI alone
	EBC Kind = "ebc" // bare metal: ENIs where its quota is more than 0, else its primary alone
)

// Options are what a Driver needs to know. What is empty and not said to have a default
// is asked of the metadata service.
type Options struct {
	Region   string // such as "bj"
	Endpoint string // URL of the API, "" is https:// with the region's host; http:// on loopback alone
	Metadata string // URL of the metadata service, "" is http://169.254.169.254

	Instance string
	Kind     Kind
	VPC      string
	Zone     string // as the metadata service names it, "zoneA", or as subnets do, "cn-bj-a"

	Timeout time.Duration // of one request, 0 is 20 s
}

// Driver is the cloud as this caller sees it.
type Driver struct {
	o     Options
	keys  *keyring
	meta  metadata
	base  http.RoundTripper
	pause time.Duration // before a read that was refused is made again, at first
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
	d.keys = &keyring{source: usual(d.meta)}
	return d, nil
}

// perCall is the most addresses that a request adds or deletes.
const perCall = 10

// usualPause is how long a Driver waits before it makes a read again, at first.
const usualPause = 500 * time.Millisecond

// Traits implements driver.Driver.
func (*Driver) Traits() driver.Traits { return Traits() }

// Traits are what is peculiar to the cloud, also for who has no instance in it.
func Traits() driver.Traits {
	return driver.Traits{
		Name: "Baidu",
		Keys: driver.Keys{Subnet: "availableIp", Room: "cloud.maxIPsPerENI", Policy: "conf/baidu/policy.json",
			Self:    "cloud.region, cloud.instance, cloud.kind, cloud.vpc and cloud.zone",
			Keyring: "BCE_ACCESS_KEY_ID and BCE_SECRET_ACCESS_KEY in the agent's environment"},
		NoIndex:      true,
		MarksV6:      true,
		AssignTokens: true,
		Exact:        true,
		PerCall:      perCall,
		PageSize:     1000,
		HidesPrimary: true,
		Zone:         shortZone,
		Requests:     methodActions(),
		Retries:      retries(usualPause),
		Buckets:      buckets(),
		Times:        driver.Times{Poll: 500 * time.Millisecond, Slow: 3 * time.Second, Settle: 10 * time.Second, Wait: 2 * time.Minute},
	}
}

// shortZone makes one of the two ways in which zones are written, "zoneA" and
// "cn-bj-a": "a".
func shortZone(zone string) string {
	zone = strings.ToLower(zone)
	if letter, ok := strings.CutPrefix(zone, "zone"); ok {
		return letter
	}
	return zone[strings.LastIndexByte(zone, '-')+1:]
}

// Skew implements driver.Clocked.
func (d *Driver) Skew() (ahead time.Duration, known bool) { return d.clock.Skew() }

// Bind implements driver.Driver. ENIs outlive their instance in this cloud.
func (*Driver) Bind(context.Context, string, string) error { return nil }

// errKeepsNone: the VPC service has CreateIpreserve, of which no page says whether addresses
// by count leave such a range alone.
func errKeepsNone() error {
	return &driver.Error{Kind: cloud.ErrForbidden, Detail: "no range of a subnet is kept for addresses by name here"}
}

// Shapes implements driver.Driver. The cloud tells the quota of an instance alone.
func (*Driver) Shapes(context.Context, []string) (map[string]driver.Shape, error) {
	return nil, &driver.Error{Kind: cloud.ErrForbidden, Detail: "the limits of instances are told, not of types"}
}

// Reserve implements driver.Driver.
func (*Driver) Reserve(context.Context, driver.Reservation) (string, error) {
	return "", errKeepsNone()
}

// Unreserve implements driver.Driver.
func (*Driver) Unreserve(context.Context, string) error { return errKeepsNone() }

// Reservations implements driver.Driver.
func (*Driver) Reservations(context.Context, string) ([]driver.Reservation, error) {
	return nil, errKeepsNone()
}
