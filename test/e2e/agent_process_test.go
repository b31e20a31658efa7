package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/test/lab"
)

// agentProgram builds the agent as it is now, with the race detector where the
// tests have it. The other programs are those of make build.
var agentProgram = sync.OnceValues(func() (string, error) {
	file := filepath.Join("..", "..", ".build", "e2e", "enipool-agent")
	args := []string{"build", "-o", file}
	if raceEnabled {
		file += "-race"
		args = []string{"build", "-race", "-o", file}
	}
	if err := build("go", append(args, "../../plugins/enipool-agent")...); err != nil {
		return "", err
	}
	return filepath.Abs(file)
})

// process is an agent that runs.
type process struct {
	*lab.Process
	s   *site
	log string // path of what it says
}

// agentCommand is a call of the agent with the site's configuration.
func (s *site) agentCommand(args ...string) *exec.Cmd {
	s.t.Helper()
	program := s.use.agent
	if program == "" {
		var err error
		program, err = agentProgram()
		s.must(err)
	}
	line := slices.Concat(s.doom, []string{program, "--config", s.confPath()}, args)
	cmd := s.command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	return cmd
}

// command is a call of a program on the node, under what the site wraps it in.
func (s *site) command(program string, args ...string) *exec.Cmd {
	line := slices.Concat(s.wrap, []string{program}, args)
	return exec.Command(line[0], line[1:]...)
}

// once runs the agent until the node is right, and returns what it says and its
// exit code.
func (s *site) once(args ...string) (said string, code int) {
	s.t.Helper()
	cmd := s.agentCommand(args...)
	var out []byte
	err := s.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// start starts the agent on the node.
func (s *site) start(args ...string) *process {
	s.t.Helper()
	f, err := os.CreateTemp(s.dir, "log")
	s.must(err)
	defer f.Close()
	cmd := s.agentCommand(args...)
	cmd.Stdout, cmd.Stderr = f, f
	runs, err := lab.Start(cmd, s.node.Do)
	s.must(err)
	p := &process{runs, s, f.Name()}
	s.agent = p
	s.lives = append(s.lives, p)
	return p
}

// end sees to it that no agent is left, and shows what they said if the test
// failed: of the last one the end, of all of them errors.
func (p *process) end(number int) {
	p.s.t.Helper()
	p.Kill() // if it has not ended
	said := p.said()
	if _, race, found := strings.Cut(said, "DATA RACE"); found {
		p.s.fail("the agent has a data race: %s", race)
	}
	if !p.s.t.Failed() {
		return
	}
	const most = 40
	lines := strings.SplitAfter(said, "\n")
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	if number < len(p.s.lives)-1 {
		lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "level=ERROR") })
	}
	file := filepath.Join("..", "..", ".build", "failed", strings.ReplaceAll(p.s.t.Name(), "/", "-"), fmt.Sprintf("agent-%d.log", number+1))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(said), 0o644)); err != nil {
		file = err.Error()
	}
	p.s.t.Logf("agent %d of %d said (all of it: %s):\n%s", number+1, len(p.s.lives), file, strings.Join(lines, ""))
}

// kill ends the agent as a crash does.
func (p *process) kill() {
	p.s.t.Helper()
	p.s.must(p.Cmd.Process.Kill())
	<-p.Ended
	p.s.agent = nil
}

// terminate ends the agent as a system does, and wants exit code 0.
func (p *process) terminate() {
	p.s.t.Helper()
	if !p.Alive() {
		p.s.fail("the agent has ended by itself")
	}
	if !p.Stop(30 * time.Second) {
		p.s.fail("the agent does not end")
	}
	if p.Err != nil {
		p.s.fail("the agent ended with %v", p.Err)
	}
	p.s.agent = nil
}

func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	p.s.must(err)
	return string(text)
}

// says waits for a line of the log that the expression matches.
func (p *process) says(line string) {
	p.s.t.Helper()
	want := regexp.MustCompile(line)
	p.s.eventually("the log has "+line, func() error {
		if !want.MatchString(p.said()) {
			return errors.New("it does not")
		}
		return nil
	})
}

// get asks the agent's pages, from the node's loopback.
func (s *site) get(page string) (code int, body string, err error) {
	return lab.Get(s.node.Do, "http://127.0.0.1:9809"+page)
}

// ready waits until pods can get addresses.
func (s *site) ready() {
	s.t.Helper()
	s.eventually("the agent is ready", func() error {
		code, body, err := s.get("/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
}

// status returns what the last tick found.
func (s *site) status() (st status.Status, err error) {
	_, body, err := s.get("/status")
	if err == nil {
		err = json.Unmarshal([]byte(body), &st)
	}
	return st, err
}

// told waits until the status is as wanted.
func (s *site) told(what string, as func(status.Status) bool) {
	s.t.Helper()
	s.eventually(what, func() error {
		st, err := s.status()
		if err == nil && !as(st) {
			err = fmt.Errorf("the status is %+v", st)
		}
		return err
	})
}

// tickAfter waits until a tick began after now: what was changed before it has
// been seen.
func (s *site) tickAfter() {
	s.t.Helper()
	now := time.Now()
	for range 2 { // the first may have begun before
		s.told("a tick", func(st status.Status) bool { return st.Written.After(now) })
		now = time.Now()
	}
}
