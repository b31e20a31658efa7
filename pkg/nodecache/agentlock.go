package nodecache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/pkg/filelock"
	"golang.org/x/sys/unix"
)

// AgentError is returned where an agent keeps the node and nobody else may.
type AgentError struct {
	Agent filelock.Holder
	Todo  string // what to do about it, "" for the usual advice
}

// Error says who it is and what to do.
func (e *AgentError) Error() string {
	return fmt.Sprintf("%s keeps this node's pool by what the cloud has, and would undo this: %s", agentName(e.Agent),
		cmp.Or(e.Todo, "change its configuration, or stop it first"))
}

// agentName names the agent for people.
func agentName(h filelock.Holder) string {
	switch {
	case h.PID == 0:
		return "an agent"
	case h.Stopped:
		return fmt.Sprintf("an agent (process %d, which is stopped: kill -CONT %[1]d lets it go on)", h.PID)
	}
	return fmt.Sprintf("an agent (process %d)", h.PID)
}

// AgentLock is the file that an agent locks for as long as it keeps the node.
func (c Cache) AgentLock() string { return c.Path + ".agent" }

// Agent tells whether an agent keeps the node, and its process. It shares the lock for a moment, so
// that who wants it alone takes it by filelock.TakeAlone. Where the lock can't be opened it
// says that none does.
func (c Cache) Agent() (agent filelock.Holder, running bool) {
	fd, err := unix.Open(c.AgentLock(), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return agent, false
	}
	defer unix.Close(fd)
	if filelock.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != unix.EWOULDBLOCK {
		return agent, false
	}
	return filelock.HolderOf(c.AgentLock()), true
}

// whereAgent is where people find out why no agent runs. The plugin does not know what the cluster calls its node.
const whereAgent = "its log says why it ended: `kubectl -n kube-system get pods -l app.kubernetes.io/name=enipool-agent --field-selector spec.nodeName=NODE`, else `journalctl -u enipool-agent`"

// AgentAway says why nobody brings the pool more addresses and what to do about it: no agent
// runs on the node, or it is stopped. It is "" where one runs.
func (c Cache) AgentAway() string { return agentAway(c.Agent()) }

func agentAway(agent filelock.Holder, running bool) string {
	switch {
	case !running:
		return "no agent runs on this node: start it (" + whereAgent + ")"
	case agent.Stopped:
		return fmt.Sprintf("the agent (process %d) is stopped: kill -CONT %[1]d lets it go on", agent.PID)
	}
	return ""
}

// WithoutAgent runs fn while no agent keeps the node and none can start. It returns
// *AgentError if one does.
func (c Cache) WithoutAgent(fn func() error) error {
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return fmt.Errorf("make folder of the node cache: %w", err)
	}
	fd, err := unix.Open(c.AgentLock(), unix.O_CREAT|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return &fs.PathError{Op: "open", Path: c.AgentLock(), Err: err}
	}
	defer unix.Close(fd)
	switch err := filelock.TakeAlone(fd, cmp.Or(c.LockTimeout, DefaultLockTimeout)); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return &AgentError{Agent: filelock.HolderOf(c.AgentLock())}
	case err != nil:
		return fmt.Errorf("lock %s: %w", c.AgentLock(), err)
	}
	return fn()
}
