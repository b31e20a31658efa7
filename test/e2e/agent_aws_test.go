package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// newAWSSite makes a site whose cloud speaks as EC2 does: the agent finds instance,
// region and credentials in the metadata, signs its calls and sends them over HTTP. The
// ENIs that come of them are links of the node. The lines change the settings.
func newAWSSite(t *testing.T, name string, lines ...string) (*site, *ec2.Endpoint, *sim.Account) {
	t.Helper()
	s := emptySite(t)
	s.makeVPC(name, sim.Options{Region: "eu-central-1", Reserve: sim.EC2Reserve, NewID: sim.EC2ID, AttachTime: 100 * time.Millisecond})
	account := s.vpc.Account
	account.AddType(ec2.Types()...)
	account.AddGroup(sim.Group{ID: "sg-0123456789abcdef0", Name: "default"})
	subnet := subnetA
	subnet.Zone = "eu-central-1a"
	s.must(account.AddSubnet(subnet))
	_, err := account.AddInstance(sim.Instance{ID: "i-0123456789abcdef0", Node: "n", Type: "m5.large", Subnet: subnetA.ID, V6: 1})
	s.must(err)
	s.node = named(name + "-n")
	endpoint := ec2.New(account, ec2.Options{Role: "node"})
	s.listen("169.254.169.254:80", endpoint.Metadata("i-0123456789abcdef0"))
	s.listen("127.0.0.1:4566", endpoint.Handler())
	t.Cleanup(s.end)
	s.configure(append([]string{"cloud.provider: aws", "cloud.endpoint: http://127.0.0.1:4566", "cloud.cluster: test",
		"cloud.timeout: 10s", "cloud.describe: 1s", "leakAge: 11s"}, lines...)...)
	s.env = []string{"AWS_EC2_METADATA_DISABLED=false", "HOME=" + s.dir}
	return s, endpoint, account
}

// listen serves at an address of the node's loopback until the test ends.
func (s *site) listen(address string, h http.Handler) {
	s.t.Helper()
	host, _, _ := strings.Cut(address, ":")
	if !strings.HasPrefix(host, "127.") {
		s.node.Run(s.t, "ip", "address", "add", host+"/32", "dev", "lo")
	}
	server := httptest.NewUnstartedServer(h)
	server.Listener.Close()
	s.must(s.node.Do(func() (err error) { server.Listener, err = net.Listen("tcp", address); return err }))
	server.Start()
	s.t.Cleanup(server.Close)
}

// devices are the links of the node's ENIs.
func (s *site) devices() (list []string) {
	for line := range strings.Lines(s.node.Run(s.t, "ip", "-br", "link")) {
		name, _, _ := strings.Cut(strings.Fields(line)[0], "@")
		if strings.HasPrefix(name, "eth") {
			list = append(list, name)
		}
	}
	return list
}

func TestPodsReachTheWorldThroughENIsOfEC2(t *testing.T) {
	t.Parallel()
	s, endpoint, account := newAWSSite(t, "aws", "pool.batch: 9", "snat: true")
	s.start()
	s.ready()
	pods := names("web", 12) // nine fit on an ENI of a m5.large
	for _, step := range []string{"AssignPrivateIpAddresses", "CreateNetworkInterface", "AttachNetworkInterface"} {
		endpoint.FailNext(step, sim.Fault{Answer: sim.Lost}) // done, but the agent does not hear of it
	}
	s.must(s.addAll(pods, 30*time.Second))
	s.reach(internet4, pods...)
	if got := s.devices(); len(got) < 2 {
		t.Errorf("12 pods on the links %v", got)
	}
	owners, err := s.owners()
	s.must(err)
	account.View(0, func(tx *sim.Tx) {
		has := map[string]bool{}
		for _, i := range tx.Interfaces() {
			for _, a := range i.V4 {
				has[a.String()] = true
			}
		}
		for a, who := range owners {
			if !has[a.String()] {
				t.Errorf("%s of %s is on no ENI of EC2", a, who)
			}
		}
	})
	s.del(pods...)
	s.eventually("the second ENI goes back", func() error {
		if got := s.devices(); len(got) != 1 {
			return fmt.Errorf("links %v", got)
		}
		return nil
	})
	s.nothingLeaked(account)
}

// Prefixes are sixteen addresses each, so an instance holds more pods than it has
// slots.
func TestPodsHaveAddressesOfPrefixesAndBothFamilies(t *testing.T) {
	t.Parallel()
	s, _, account := newAWSSite(t, "awsprefix", "cloud.prefixes: true", "families: [ipv4, ipv6]")
	s.start()
	s.ready()
	pods := names("web", 40) // a m5.large has 27 secondary addresses
	s.must(s.addAll(pods, 30*time.Second))
	s.reach(internet4, pods[0], pods[39])
	s.reach(internet6, pods[0], pods[39])
	account.View(0, func(tx *sim.Tx) {
		for _, i := range tx.Interfaces() {
			if len(i.V4) > 0 {
				t.Errorf("ENI %s has single addresses: %v", i.ID, i.V4)
			}
		}
	})
	s.del(pods...)
	s.poolOf(16 + 144) // a /28 and what is used of a /80
	s.nothingLeaked(account)
}

// What EC2 tells of an ENI and can't be right gets no address into the cache.
func TestAnAddressOutsideOfItsSubnetIsLeftOut(t *testing.T) {
	t.Parallel()
	s, endpoint, account := newAWSSite(t, "awsbad", "pool.batch: 9")
	s.start()
	s.ready()
	s.add("web")
	foreign := func(body []byte) []byte { return bytes.ReplaceAll(body, []byte("10.0.1.6<"), []byte("192.0.2.6<")) }
	for range 100 {
		endpoint.FailNext("DescribeNetworkInterfaces", sim.Fault{Rewrite: foreign})
	}
	s.told("it is left out", func(st status.Status) bool {
		return len(st.LeftOut) == 1 && strings.Contains(st.LeftOut[0], "192.0.2.6")
	})
	if _, body, err := s.get("/metrics"); err != nil || !strings.Contains(body, "\nenipool_quarantined 1\n") {
		t.Errorf("metrics: %v\n%s", err, body)
	}
	cached, err := s.view()
	s.must(err)
	for _, a := range cached.Addresses {
		if !subnetA.V4.Contains(a.Addr) {
			t.Errorf("the cache has %s", a.Addr)
		}
	}
	s.reach(internet4, "web")
	s.must(account.Check())
}

// nothingLeaked waits until the account has the node's own ENI alone.
func (s *site) nothingLeaked(account *sim.Account) {
	s.t.Helper()
	s.eventually("no ENI is left over", func() (err error) {
		account.View(0, func(tx *sim.Tx) {
			if n := len(tx.Interfaces()); n != 1 {
				err = fmt.Errorf("%d ENIs", n)
			}
		})
		return err
	})
}
