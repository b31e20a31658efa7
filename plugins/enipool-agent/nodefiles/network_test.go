package nodefiles

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/status"
)

// member is a node of a cluster with what its agent publishes.
type member struct {
	*Publisher
	conflist string // its path
	offers   bool
	told     []kube.Network // that differ from the one before
	log      bytes.Buffer
	now      time.Time
}

func newMember(t *testing.T) *member {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{install.ConfDir, install.StateDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stage(t, root, "install.json", []byte(`{"conflists": ["`+install.ConfDir+`/10-enipool.conflist"]}`))
	stage(t, root, "10-enipool.conflist", install.DefaultConflist())
	m := &member{conflist: filepath.Join(root, install.ConfDir, "10-enipool.conflist"), now: time.Unix(1000, 0)}
	m.Publisher = &Publisher{tree: install.Tree{Root: root}, cache: "/run/enipool/node.cache", log: slog.New(slog.NewTextHandler(&m.log, nil))}
	m.TellCluster(Cluster{Offers: func() bool { return m.offers }, Report: m.hear})
	return m
}

func (m *member) hear(n kube.Network) {
	if len(m.told) == 0 || m.told[len(m.told)-1] != n {
		m.told = append(m.told, n)
	}
}

// tick publishes the status of a node that has so many addresses, some seconds after the one before.
func (m *member) tick(attached, seconds int) {
	m.now = m.now.Add(time.Duration(seconds) * time.Second)
	_ = m.PublishAfter(func(status.Status, string) error { return nil })(status.Status{Written: m.now, Ready: attached > 0, Addresses: status.Addresses{Attached: attached}}, "")
}

func (m *member) inPlace() bool {
	_, err := os.Stat(m.conflist)
	return err == nil
}

// reasons are those of what the cluster was told.
func (m *member) reasons() (list []string) {
	for _, n := range m.told {
		list = append(list, n.Reason)
	}
	return list
}

func TestTheNetworkConfigurationComesAfterTheResource(t *testing.T) {
	m := newMember(t)
	m.tick(0, 1)
	m.tick(1, 1)
	m.tick(1, 10)
	if m.inPlace() || len(m.told) > 0 {
		t.Fatalf("before the Node shows addresses: %v", m.told)
	}
	m.offers = true
	m.tick(1, 1)
	if !m.inPlace() || !m.told[0].Ready {
		t.Errorf("%v", m.told)
	}
	m.offers = false // as after a kubelet's start, for a moment
	if err := os.Remove(m.conflist); err != nil {
		t.Fatal(err)
	}
	if m.tick(1, 10); !m.inPlace() || len(m.told) != 1 {
		t.Errorf("one that got lost does not come back: %v", m.told)
	}
}

func TestAnAPIServerThatTakesNoResourceKeepsNoPodFromItsNode(t *testing.T) {
	m := newMember(t)
	for range 30 {
		m.tick(1, 1)
	}
	if m.inPlace() {
		t.Error("it did not wait")
	}
	if m.tick(1, 1); !m.inPlace() || strings.Count(m.log.String(), "waits no longer") != 1 {
		t.Errorf("log: %s", &m.log)
	}
}

func TestTheClusterHearsWhetherPodsCanHaveNetworks(t *testing.T) {
	m := newMember(t)
	m.offers = true
	m.tick(0, 1)
	m.tick(1, 1)
	for range 3600 { // full or not
		m.tick(30, 1)
	}
	if diff := cmp.Diff([]string{networkServed}, m.reasons()); diff != "" {
		t.Error(diff)
	}
	for range 25 { // a node cache that is rebuilt
		m.tick(0, 1)
	}
	m.tick(1, 1)
	for range 40 {
		m.tick(0, 1)
	}
	m.tick(1, 10)
	if diff := cmp.Diff([]string{networkServed, noAddress, networkServed}, m.reasons()); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(os.Remove(m.conflist), os.Remove(filepath.Dir(m.conflist))); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		m.tick(1, 10)
	}
	if last := m.told[len(m.told)-1]; last.Ready || last.Reason != noConfiguration || !strings.Contains(last.Message, "no folder") {
		t.Errorf("%+v", last)
	}
}

// An agent that starts says nothing before it knows: what the one before has told stays.
func TestAStartOfTheAgentChangesNothing(t *testing.T) {
	m := newMember(t)
	m.offers = true
	m.tick(1, 1)
	m.Publisher = &Publisher{tree: m.tree, cache: m.cache, log: m.Publisher.log}
	m.TellCluster(Cluster{Offers: func() bool { return m.offers }, Report: m.hear})
	m.now = m.now.Add(time.Hour)
	for range 20 { // it looks at its node
		m.tick(0, 1)
	}
	m.tick(1, 1)
	if diff := cmp.Diff([]string{networkServed}, m.reasons()); diff != "" {
		t.Error(diff)
	}
}

// A configuration that a person puts there is theirs to keep in place.
func TestAPersonsNetworkConfigurationCounts(t *testing.T) {
	m := newMember(t)
	m.offers = true
	if err := os.Remove(filepath.Join(m.tree.Root, install.StateDir, "10-enipool.conflist")); err != nil {
		t.Fatal(err)
	}
	if m.tick(1, 1); len(m.told) != 1 || !m.told[0].Ready {
		t.Errorf("%v", m.told)
	}
}
