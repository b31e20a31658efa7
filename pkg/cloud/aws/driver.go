package aws

import (
	"cmp"
	"context"
	_ "embed"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// Options are what a Driver may know before it asks. All may be left out.
type Options struct {
	Region   string // "" is what the metadata says, or the SDK's configuration where Instance is set
	Endpoint string // URL of EC2, "" is the region's own
	Metadata string // URL of the instance metadata, "" is http://169.254.169.254
	Instance string // ID of the instance, "" is what the metadata says
	Zone     string // its availability zone, "" is what the metadata says

	Log *slog.Logger // what the SDK says, at debug; nil for none
}

// Driver is EC2 in one region, as one caller sees it.
type Driver struct {
	o       Options
	log     *slog.Logger
	secrets wire.Secrets
	clock   wire.Clock

	// What tests change.
	http    aws.HTTPClient       // nil: the SDK's own
	retryer func() aws.RetryerV2 // of reads
	page    int32                // objects per page of an answer

	connecting chan struct{} // a lock that a context can end the wait for; it guards self
	self       driver.Self   // Instance is "" until the driver is connected
	api        operations    // set before self is, and never changed after that
}

var (
	_ driver.Driver  = (*Driver)(nil)
	_ driver.Prober  = (*Driver)(nil)
	_ driver.Clocked = (*Driver)(nil)
	_ cloud.Believer = (*Driver)(nil)
)

//go:embed DESIGN.md
var design string

// Beliefs implements cloud.Believer.
func (d *Driver) Beliefs() []cloud.Belief { return cloud.ReadBeliefs(design) }

// New returns the driver. It makes no call.
func New(o Options) *Driver {
	return &Driver{o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), secrets: wire.Secrets{Also: sensitive},
		retryer: func() aws.RetryerV2 { return retry.NewAdaptiveMode() }, page: perPage, connecting: make(chan struct{}, 1)}
}

// Lengths of the prefixes that EC2 delegates to an ENI.
const (
	bits4 = 28
	bits6 = 80
)

// perPage is how many objects a page of an answer has at most.
const perPage = 1000

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	t := Traits()
	t.PageSize = int(d.page)
	return t
}

// Traits returns what is peculiar to EC2. Simulations use it too, which have no Driver.
func Traits() driver.Traits {
	return driver.Traits{
		Name: "EC2",
		Keys: driver.Keys{Subnet: "AvailableIpAddressCount", Self: "cloud.instance and cloud.region", Policy: "conf/aws/policy.json",
			Keyring: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the agent's environment", Reserved: "aws ec2 get-subnet-cidr-reservations"},
		FillsFirst: true, CreateFills: true, Binds: true, AllOrNothing: true, Exact: true, Moves: true, Types: true,
		PerScan: perFilter, PageSize: perPage, Bits4: bits4, Bits6: bits6, Reserves: true, Keeps: true,
		Requests: methodActions(), Buckets: accountBuckets(), Retries: readRetries(),
		Times: driver.Times{Poll: 500 * time.Millisecond, Slow: 3 * time.Second, Usual: 2 * time.Second, Settle: 10 * time.Second, Wait: 2 * time.Minute},
	}
}

// Self implements driver.Driver.
func (d *Driver) Self(ctx context.Context) (driver.Self, error) {
	if err := d.connect(ctx); err != nil {
		return driver.Self{}, err
	}
	return d.self, nil
}

// Rewrite implements driver.Driver. Only clouds with the trait MarksV6 need it.
func (d *Driver) Rewrite(context.Context, string, driver.Mark, string) error {
	return errorf(cloud.ErrForbidden, "the marks of ENIs are tags here, which stay as they were made")
}

// Skew implements driver.Clocked.
func (d *Driver) Skew() (ahead time.Duration, known bool) { return d.clock.Skew() }
