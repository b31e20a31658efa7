package cri

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// networkReady returns nil if containerd says that pods can have a network, else the
// reason that a kubelet shows.
func (m *testNode) networkReady() error {
	is, err := ask(m.cri.Status, &api.StatusRequest{})
	if err != nil {
		return err
	}
	for _, c := range is.Status.Conditions {
		if c.Type == api.NetworkReady && !c.Status {
			return fmt.Errorf("the network is not ready: %s: %s", c.Reason, c.Message)
		}
	}
	return nil
}

// publish puts a network configuration in place and waits until containerd, which
// notices by itself, has it.
func (m *testNode) publish(conflist string) {
	m.t.Helper()
	m.write(conflistPath, conflist)
	eventually(m.t, "containerd has the network configuration", func() error {
		is, err := ask(m.cri.Status, &api.StatusRequest{Verbose: true})
		if err != nil {
			return err
		}
		var has struct {
			Networks []struct{ Config struct{ Source string } }
		}
		if err := json.Unmarshal([]byte(is.Info["cniconfig"]), &has); err != nil {
			return fmt.Errorf("what it says of its networks: %w: %s", err, is.Info["cniconfig"])
		}
		for _, network := range has.Networks {
			if network.Config.Source == conflist {
				return nil
			}
		}
		return fmt.Errorf("it has %v", has)
	})
}

// waitNetwork waits until the network is ready.
func (m *testNode) waitNetwork() {
	m.t.Helper()
	eventually(m.t, "the network of node "+m.Name, m.networkReady)
}

// asksStatus tells whether containerd calls STATUS, which it does since 2.0.
func (m *testNode) asksStatus() bool {
	m.t.Helper()
	v, err := ask(m.cri.Version, &api.VersionRequest{})
	m.must(err)
	return !strings.HasPrefix(strings.TrimPrefix(v.RuntimeVersion, "v"), "1.")
}

// cnitool runs the plugins of the configuration as a runtime does that knows the newest
// version of the protocol.
func (m *testNode) cnitool(args ...string) (string, error) {
	bin, err := programs()
	m.must(err)
	return m.Try(append([]string{"env", "NETCONFPATH=/etc/cni/net.d", "CNI_PATH=/opt/cni/bin", bin.reference + "/cnitool"}, args...)...)
}

func TestTheNetworkIsReadyOnceItsConfigurationAndAPoolAreThere(t *testing.T) {
	t.Parallel()
	m := newBareNode(newRegion(t, "ready"), "a", plan{limits: small})
	m.leavesNothing()
	if err := m.networkReady(); err == nil || !strings.Contains(err.Error(), "cni plugin not initialized") {
		t.Errorf("without a configuration: %v", err)
	}
	m.publish(m.conflist())
	switch out, err := m.cnitool("status", "enipool", "/run/netns/none"); {
	case err == nil:
		t.Errorf("STATUS without an agent: %s", out)
	case !strings.Contains(out+err.Error(), "node cache"):
		t.Errorf("STATUS without an agent says nothing of the node cache: %v", err)
	}
	if m.asksStatus() {
		eventually(t, "the network is not ready without an agent", func() error { return not(m.networkReady(), "node cache") })
	} else {
		m.waitNetwork()
		_, err := m.try("early")
		m.must(not(err, "node cache"))
	}
	m.agent.Start()
	if out, err := m.cnitool("status", "enipool", "/run/netns/none"); err != nil {
		t.Errorf("STATUS with an agent: %v\n%s", err, out)
	}
	m.waitNetwork()
	p := m.run("web")
	p.reach(internet)
	p.end() // while the configuration is away containerd can't stop it
	m.must(os.Remove(m.Path(conflistPath)))
	eventually(t, "the network is not ready without a configuration", func() error { return not(m.networkReady(), "") })
}

// not wants an error that has the words.
func not(err error, words string) error {
	if err == nil || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("got %v, want an error with %q", err, words)
	}
	return nil
}
