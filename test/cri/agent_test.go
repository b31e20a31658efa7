package cri

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/test/lab"
)

const agentConfPath = "/etc/enipool/agent.yaml"

// agentConf is the agent's file: all comes as soon as it may, but for what a test
// wants to see last.
const agentConf = `node: %s
cache: %s
state: %s
vpcCIDRs: [10.0.0.0/16]
coolDown: %s
resync: 1s
settle: 0s
orphanAge: 1s
leakAge: 1s
cloud:
  endpoint: unix://%s
  callsPerSecond: 1000
  callsBurst: 1000
  timeout: 1s
pool:
  batch: %d
  minPool: %d
  stable: 5s
  delay: 0s
  burstWindow: 1s
  releaseInterval: 1s
`

func (m *testNode) writeAgentConf() {
	m.t.Helper()
	m.write(agentConfPath, fmt.Sprintf(agentConf, m.Name, m.cachePath(), filepath.Join(filepath.Dir(m.cachePath()), "agent.json"),
		cmp.Or(m.coolDown, "30s"), m.r.socket, m.limits.V4-1, m.minPool))
}

// answers returns nil once the agent says that pods can get addresses.
func (m *testNode) answers() error {
	return lab.Fine(m.Do, "http://127.0.0.1:9809/readyz")
}

// pool returns what the node cache holds.
func (m *testNode) pool() (r node.Report, err error) {
	out, err := m.ctl("pool", "show", "--output=json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	return r, err
}

// count returns how many addresses of the pool are in which state.
func (m *testNode) count() map[string]int {
	m.t.Helper()
	r, err := m.pool()
	m.must(err)
	states := map[string]int{}
	for _, a := range r.Addresses {
		states[a.State]++
	}
	return states
}

// poolOf waits until the pool has so many addresses.
func (m *testNode) poolOf(n int) {
	m.t.Helper()
	eventually(m.t, fmt.Sprintf("a pool of %d", n), func() error {
		r, err := m.pool()
		if err == nil && len(r.Addresses) != n {
			err = fmt.Errorf("it has %d", len(r.Addresses))
		}
		return err
	})
}
