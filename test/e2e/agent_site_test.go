package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/test/lab"
)

// site is a node of a simulated VPC whose pool an agent keeps. Its folder holds
// all files, and the cloud is served there.
type site struct {
	t       *testing.T
	dir     string
	vpc     *lab.VPC
	account *sim.Account // nil where the cloud is another one
	node    nettest.Netns
	far     nettest.Netns // the internet
	cache   nodecache.Cache
	stop    func() error // the cloud's service
	heeds   bool         // that does what it was asked for when who asked is gone
	env     []string     // of the agent, on top
	wrap    []string     // a command line to run agent and plugin under
	doom    []string     // one to run the agent under
	use     programs     // what runs as plugin and agent; "" is what is built now
	agent   *process     // that runs
	lives   []*process   // and those before
	pods    map[string]nettest.Netns
	asks    map[string]string // runtimeConfig of the pods that have one
	verdict []string          // what went wrong, told once more behind everything else
}

// plan is what a site is like.
type plan struct {
	name    string // of its network, one a test
	limits  eni.Limits
	v4      netip.Prefix // of its subnet; 10.0.1.0/24 if not set
	options sim.Options
	away    bool // the cloud is not served yet
	heeds   bool // the cloud does what it was asked for when who asked is gone
}

// small are limits by which a batch of 16 fills an ENI.
var small = eni.Limits{ENIs: 4, V4: 17, V6: 17}

// tiny are limits by which two pods fill an ENI.
var tiny = eni.Limits{ENIs: 4, V4: 3, V6: 3}

func newSite(t *testing.T, p plan) *site {
	t.Helper()
	s := emptySite(t)
	s.makeVPC(p.name, p.options)
	s.account = s.vpc.Account
	subnet := subnetA
	if p.v4.IsValid() {
		subnet.V4 = p.v4
	}
	if p.limits == (eni.Limits{}) {
		p.limits = small
	}
	n, err := s.vpc.AddNode(sim.NodeSpec{Name: "n", Limits: p.limits, Subnet: subnet.ID}, subnet)
	s.must(err)
	s.node = named(n.Name)
	s.heeds = p.heeds
	if !p.away {
		s.serve()
	}
	t.Cleanup(s.end)
	s.configure()
	return s
}

// subnetA is the subnet of every site.
var subnetA = sim.Subnet{ID: "subnet-a", V4: netip.MustParsePrefix("10.0.1.0/24"), V6: netip.MustParsePrefix("2001:db8::/64")}

// emptySite has a folder, and nothing else yet.
func emptySite(t *testing.T) *site {
	t.Helper()
	nettest.Need(t)
	dir := lab.Dir(t)
	s := &site{t: t, dir: dir, cache: nodecache.Cache{Path: filepath.Join(dir, "run", "node.cache")}, pods: map[string]nettest.Netns{}, asks: map[string]string{}}
	t.Cleanup(func() {
		for _, wrong := range s.verdict {
			t.Log("VERDICT: " + shorten(wrong))
		}
	})
	return s
}

// fail notes an error for the end too: of a long output people often see only that.
func (s *site) fail(format string, args ...any) {
	s.t.Helper()
	wrong := fmt.Sprintf(format, args...)
	s.verdict = append(s.verdict, wrong)
	s.t.Error(wrong)
}

func shorten(text string) string {
	if most := 500; len(text) > most {
		text = text[:most] + " ..."
	}
	return text
}

func (s *site) makeVPC(name string, o sim.Options) {
	s.t.Helper()
	s.vpc = lab.NewVPC(s.t, name, o, lab.V4, lab.V6)
	s.far = named(s.vpc.Network.Internet().Name)
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.fail("%v", err)
		s.t.FailNow()
	}
}

// serve lets the agent reach the cloud.
func (s *site) serve() {
	s.t.Helper()
	var err error
	s.stop, err = s.vpc.Serve(filepath.Join(s.dir, "vpc.sock"), newBothReleases(s.account, s.heeds))
	s.must(err)
}

// settings are those of tests: everything comes as soon as it may.
const settings = `
node: n
maxPods: 110
vpcCIDRs: [10.0.0.0/16]
snat: false
coolDown: 0s
resync: 1s
settle: 0s
orphanAge: 0s
leakAge: 1s
pool.batch: 16
pool.stable: 5s
pool.delay: 0s
pool.burstWindow: 1s
pool.releaseInterval: 1s
cloud.callsPerSecond: 1000
cloud.callsBurst: 1000
cloud.timeout: 1s
listen: 127.0.0.1:9809
`

// state is the agent's own file. It is in the cache's folder, which is the agent's
// to make.
func (s *site) state() string { return filepath.Join(filepath.Dir(s.cache.Path), "agent.json") }

func (s *site) confPath() string { return filepath.Join(s.dir, "agent.yaml") }

// configure writes the agent's configuration: the settings, with what the lines
// "key: value" change, in one step as editors do.
func (s *site) configure(lines ...string) {
	s.t.Helper()
	values := map[string]string{"cache": s.cache.Path, "state": s.state(),
		"cloud.endpoint": "unix://" + filepath.Join(s.dir, "vpc.sock")}
	for _, line := range append(strings.Split(strings.TrimSpace(settings), "\n"), lines...) {
		key, value, _ := strings.Cut(line, ": ")
		values[key] = value
	}
	text := map[string]string{}
	for key, value := range values {
		section, rest, nested := strings.Cut(key, ".")
		if nested {
			text[section] += "  " + rest + ": " + value + "\n"
		} else {
			text[""] += key + ": " + value + "\n"
		}
	}
	fresh := s.confPath() + ".new"
	s.must(os.WriteFile(fresh, []byte(text[""]+"cloud:\n"+text["cloud"]+"pool:\n"+text["pool"]), 0o600))
	s.must(os.Rename(fresh, s.confPath()))
}

// eventually waits until done returns nil, and fails the test if it does not in
// good time.
func (s *site) eventually(what string, done func() error) {
	s.t.Helper()
	ctx, cancel := deadline(s.t)
	defer cancel()
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.fail("%s: %v", what, err)
			s.t.FailNow()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// view returns the node cache, or why it can't be read.
func (s *site) view() (*ipam.State, error) {
	var cached *ipam.State
	err := s.cache.View(context.Background(), func(b *ipam.State) error { cached = b.Clone(); return nil })
	return cached, err
}

// count returns how many addresses the pool has in which states.
func (s *site) count() (ipam.Count, error) {
	cached, err := s.view()
	if err != nil {
		return ipam.Count{}, err
	}
	if len(cached.Damaged) > 0 {
		return ipam.Count{}, fmt.Errorf("damaged: %v", cached.Damaged)
	}
	return cached.Count(nodecache.SinceBoot(), nil), nil
}

// poolOf waits until the pool has so many addresses, none of them on its way back.
func (s *site) poolOf(n int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("a pool of %d", n), func() error {
		c, err := s.count()
		if err == nil && (c.Total != n || c.Releasing > 0) {
			err = fmt.Errorf("it is %+v", c)
		}
		return err
	})
}

// owners returns who has which address, as the pod's name and its key.
func (s *site) owners() (map[netip.Addr]string, error) {
	cached, err := s.view()
	if err == nil && len(cached.Damaged) > 0 {
		err = fmt.Errorf("damaged: %v", cached.Damaged)
	}
	if err != nil {
		return nil, err
	}
	list := map[netip.Addr]string{}
	for _, a := range cached.Used() {
		list[a.Addr] = a.Owner.PodName() + " " + a.Owner.Key.String()
	}
	return list, nil
}

// end takes off the pods that are left, ends the agent and looks for what must
// never be.
func (s *site) end() {
	defer func() {
		for i, p := range s.lives {
			p.end(i)
		}
	}()
	for _, id := range slices.Collect(maps.Keys(s.pods)) {
		if err := s.try("DEL", id, 0); err != nil {
			s.t.Error(err)
		}
		s.must(s.pods[id].Remove())
		delete(s.pods, id)
	}
	if s.agent != nil {
		s.agent.terminate()
	}
	cached, err := s.view()
	if errors.Is(err, nodecache.ErrMissing) || nodecache.Unusable(err) && s.t.Failed() {
		return
	}
	s.must(err)
	if err := cached.Check(); err != nil {
		s.t.Errorf("the cache contradicts itself: %v", err)
	}
	for _, a := range cached.Used() {
		s.t.Errorf("still used: %s by %s", a.Addr, a.Owner.Key)
	}
	for line := range strings.Lines(s.node.Run(s.t, "ip", "-br", "link")) {
		if strings.HasPrefix(line, "eni") {
			s.t.Errorf("left over: %s", line)
		}
	}
}
