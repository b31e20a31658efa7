package bce

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Kind is a kind of instance: they differ in where their addresses may be.
type Kind string

// The kinds. Other names that the metadata service may tell count as BCC.
const (
	BCC Kind = "bcc" // a virtual machine: ENIs
	BBC Kind = "bbc" // bare metal: its own ENI alone
	EBC Kind = "ebc" // bare metal: ENIs where its quota is more than 0, else its own alone
)

// Options are what a Client needs to know. What is empty and not said to have a
// default is asked of the metadata service.
type Options struct {
	Region   string // such as "bj"
	Endpoint string // URL of the API, "" is https:// with the region's host; http:// on loopback alone
	Metadata string // URL of the metadata service, "" is http://169.254.169.254

	Instance string
	Kind     Kind
	VPC      string
	Zone     string // as the metadata service names it, "zoneA", or as subnets do, "cn-bj-a"
	Cluster  string // Sweep looks at its ENIs alone; "" is a cluster too

	Subnets        []string          // in which new ENIs may lie, none: that of the instance's own ENI
	SubnetTags     map[string]string // and those of the zone that have all these tags
	SecurityGroups []string          // of new ENIs, all g-... or all esg-...; none: those of the own ENI
	Tags           map[string]string // of new ENIs
	IPv6           bool              // ENIs may have IPv6 addresses

	Limits      eni.Limits    // what is not 0 here wins over what the cloud says
	Credentials Source        // nil: the usual places, see Usual
	Timeout     time.Duration // of one call of the API, 0 is 20 s
	Wait        time.Duration // for an ENI to be attached or detached, 0 is 2 minutes
	Log         *slog.Logger  // warnings, nil for none
}

// Client is the Cloud of one instance.
type Client struct {
	o      Options
	groups groups
	keys   *keyring
	meta   metadata
	base   http.RoundTripper
	poll   time.Duration // between looks at a changing ENI, at first
	settle time.Duration // until describes show what was made, at most
	skew   atomic.Int64  // nanoseconds that the clock here is ahead, by the last answer

	mu     sync.Mutex
	self   *self
	nets   map[string]network // of subnets, which never change theirs
	known  map[string]record  // ENIs of this instance as they were last seen, by ID
	making map[string]plan    // what this process has asked for, by token
	ownENI string
	last   machine // as the last look has shown it
	recall recall
	wrong  []cloud.Quarantined
}

var _ cloud.Cloud = (*Client)(nil)

// record is what a Client remembers of an ENI.
type record struct {
	subnet string
	ours   bool
	mark   mark
	index  int
	seen   time.Time
}

// plan is how CreateInterface goes about a token.
type plan struct {
	mark       mark
	generation int  // how many ENIs of the token were undone
	begun      bool // the cloud was asked, and may have done it
}

var (
	clusterFormat = regexp.MustCompile(`^[A-Za-z0-9._-]{0,32}$`)
	wordFormat    = regexp.MustCompile(`^[A-Za-z0-9_-]{0,40}$`)
)

// New returns a Client. It does no call.
func New(o Options) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	g, err := parseGroups(o.SecurityGroups)
	if err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	o.Wait = cmp.Or(o.Wait, 2*time.Minute)
	o.Endpoint = strings.TrimSuffix(o.Endpoint, "/")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	c := &Client{o: o, groups: g, meta: newMetadata(o.Metadata), base: transport(), poll: 500 * time.Millisecond, settle: 10 * time.Second,
		nets: map[string]network{}, known: map[string]record{}, making: map[string]plan{}}
	source := o.Credentials
	if source == nil {
		source = usual(c.meta)
	}
	c.keys = &keyring{source: source}
	return c, nil
}

func (o Options) validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if err := safeURL(o.Endpoint, "endpoint"); err != nil {
		errs = append(errs, err)
	}
	if err := safeURL(o.Metadata, "metadata"); err != nil {
		errs = append(errs, err)
	}
	if !clusterFormat.MatchString(o.Cluster) {
		bad("cluster %q: must be at most 32 letters, digits, dots, dashes and underscores", o.Cluster)
	}
	for name, value := range map[string]string{"region": o.Region, "instance": o.Instance, "vpc": o.VPC, "zone": o.Zone} {
		if !wordFormat.MatchString(value) {
			bad("%s %q: must be letters, digits, dashes and underscores", name, value)
		}
	}
	for _, id := range o.Subnets {
		if id == "" || !wordFormat.MatchString(id) {
			bad("subnet %q: must be an id", id)
		}
	}
	if !slices.Contains([]Kind{"", BCC, BBC, EBC}, o.Kind) {
		bad("kind %q: must be bcc, bbc or ebc", o.Kind)
	}
	if o.Timeout < 0 || o.Wait < 0 || o.Limits.ENIs < 0 || o.Limits.V4 < 0 || o.Limits.V6 < 0 {
		bad("timeouts and limits must not be below 0")
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// safeURL returns why the credentials must not go to the URL, or nil. Plain HTTP is
// for this machine and, for metadata, its link.
func safeURL(text, what string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s: must be a URL of a scheme and a host", what)
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	near := u.Hostname() == "localhost" || addr.IsLoopback() || what == "metadata" && addr.IsLinkLocalUnicast()
	if u.Scheme != "https" && (u.Scheme != "http" || !near) {
		return fmt.Errorf("%s %s: must be https, but on loopback", what, text)
	}
	return nil
}

// groups are security groups of one of the two kinds.
type groups struct{ plain, enterprise []string }

func parseGroups(ids []string) (g groups, err error) {
	for _, id := range ids {
		switch {
		case strings.HasPrefix(id, "esg-"):
			g.enterprise = append(g.enterprise, id)
		case strings.HasPrefix(id, "g-"):
			g.plain = append(g.plain, id)
		default:
			return groups{}, fmt.Errorf("security group %q: must begin with g- or esg-", id)
		}
	}
	if len(g.plain) > 0 && len(g.enterprise) > 0 {
		return groups{}, errors.New("security groups: an ENI has either g-... or esg-..., and these are of both kinds")
	}
	return g, nil
}
