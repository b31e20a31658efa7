package vpc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/test/lab"
)

// agentConfig is the file of a node's agent.
const agentConfig = `# conf/agent.yaml explains every key.
node: %s
cache: %s
state: %s
vpcCIDRs: [%s]
cloud:
  provider: sim
  endpoint: unix://%s
`

// writeConfig writes a node's agent.yaml.
func writeConfig(at *place, node string) error {
	text := fmt.Sprintf(agentConfig, node, at.cachePath(node), at.statePath(node), lab.V4, at.socketPath())
	return errors.Join(os.MkdirAll(at.pathOf(node), 0o700), os.WriteFile(at.configPath(node), []byte(text), 0o600))
}

// agents are those that the server has started.
type agents struct {
	*place
	program string // "" if people start their own
	running sync.WaitGroup
}

// againTime is how long an agent stays down that has ended, and stopTime how long one may take to end.
const (
	againTime = time.Second
	stopTime  = 15 * time.Second
)

// start starts a node's agent. It is ended with ctx, and started again when it ends before, as a service manager would.
func (a *agents) start(ctx context.Context, node string, ns isolate.Namespace) error {
	if a.program == "" {
		return nil
	}
	p, err := a.startOnce(node, ns)
	if err != nil {
		return err
	}
	a.running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				p.Stop(stopTime)
				return
			case <-p.Ended:
			}
			fmt.Printf("the agent of %s has ended, %v; it is started again. Its log: %s\n", node, p.Cmd.ProcessState, a.agentLogPath(node))
			for again := false; !again; {
				select {
				case <-ctx.Done():
					return
				case <-time.After(againTime):
				}
				if p, err = a.startOnce(node, ns); err != nil {
					fmt.Println(err)
				}
				again = err == nil
			}
		}
	})
	return nil
}

func (a *agents) startOnce(node string, ns isolate.Namespace) (*lab.Process, error) {
	log, err := os.OpenFile(a.agentLogPath(node), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(a.program, "--config", a.configPath(node))
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: an interrupt from a terminal is for the server, which ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := lab.Start(cmd, ns.Do)
	if err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", filepath.Base(a.program), node, err)
	}
	return p, nil
}

// readyTime is more than an agent needs for its first addresses.
const readyTime = 10 * time.Second

// awaitAgents waits until pods can get addresses. Who asks sooner is told by the plugin what is missing.
func awaitAgents(ctx context.Context, at *place, nodes []string) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for _, node := range nodes {
		for ctx.Err() == nil {
			if s, err := status.Beside(at.cachePath(node)).Read(); err == nil && s.Ready {
				break
			}
			select {
			case <-ctx.Done():
				fmt.Printf("The agent of %s has no addresses after %s: %s tells why.\n", node, readyTime, at.agentLogPath(node))
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}
