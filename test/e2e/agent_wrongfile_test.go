package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/status"
)

// A wrong file that is rolled out does not end the agents of a cluster: an agent that is
// started with it goes on with what was in force last, says so, and takes the mended file.
func TestAnAgentThatIsStartedWithAWrongFileGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "wrongfile"})
	s.configure("coolDown: 7s")
	first := s.start()
	s.poolOf(16)
	s.add("web")
	s.coolDown(7 * time.Second)
	s.told("a configuration in force", func(st status.Status) bool { return st.Refused == nil })
	first.terminate()

	s.configure("coolDown: 9s", "pool.bacth: 32")
	s.start().says(`level=ERROR msg="the configuration file is wrong: the agent starts with the configuration that was in force last" kept=.*agent.json.good`)
	s.told("the wrong file", func(st status.Status) bool {
		return st.Ready && st.Refused != nil && st.Refused.Start && st.Refused.Kept == s.state()+".good" &&
			strings.Contains(st.Refused.Error, "pool.bacth: unknown key; did you mean pool.batch? (line ")
	})
	if _, page, err := s.get("/metrics"); err != nil || !strings.Contains(page, "\nenipool_config_ok 0\n") {
		t.Errorf("the metrics don't tell it: %v", err)
	}
	s.add("db")
	s.reach(internet4, "web", "db")
	s.coolDown(7 * time.Second)

	s.configure("coolDown: 9s", "pool.batch: 32") // mended while the agent runs
	s.coolDown(9 * time.Second)
	s.told("a configuration in force", func(st status.Status) bool { return st.Refused == nil })
	s.agent.kill()

	// What was mended is what the next start goes on with, also where the file is no YAML.
	s.must(os.WriteFile(s.confPath(), []byte("state: "+s.state()+"\npool: [\n"), 0o600))
	s.start()
	s.told("the wrong file", func(st status.Status) bool { return st.Refused != nil && st.Refused.Start && st.Ready })
	s.coolDown(9 * time.Second)
	s.agent.terminate()

	// Without anything to go on with it is an error, as at a first start.
	s.must(os.Remove(s.state() + ".good"))
	p := s.start()
	p.says(`^enipool-agent: .*agent.yaml: read configuration: `)
	<-p.Ended
	if code := p.Cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	s.agent = nil
	s.configure()
	s.start()
	s.tickAfter()
	s.reach(internet4, "web", "db")
}

// A disk that is full keeps no configuration: that is told while there is time.
func TestAConfigurationThatCanNotBeKeptIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "notkept"})
	small := filepath.Join(s.dir, "small")
	s.must(os.Mkdir(small, 0o700))
	nettest.Run(t, "mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", small)
	t.Cleanup(func() { nettest.Run(t, "umount", "-l", small) })
	s.configure("state: " + filepath.Join(small, "agent.json"))
	agent := s.start()
	s.poolOf(16)
	full := filepath.Join(small, "full")
	_ = os.WriteFile(full, make([]byte, 1<<20), 0o600) // as far as it goes
	s.must(os.Remove(filepath.Join(small, "agent.json.good")))
	_ = os.WriteFile(full, make([]byte, 1<<20), 0o600)
	s.configure("state: "+filepath.Join(small, "agent.json"), "coolDown: 8s")
	s.coolDown(8 * time.Second)
	agent.says(`level=WARN msg="a start at which the configuration file is wrong would fail: .*" error="keep the configuration: .*no space left on device"`)
	s.configure("state: "+filepath.Join(small, "agent.json"), "colour: red")
	s.told("a start that would fail", func(st status.Status) bool {
		return st.Refused != nil && strings.Contains(st.Refused.NotKept, "no space left on device") && st.Refused.Kept == ""
	})
	if err := os.Remove(full); err != nil {
		t.Fatal(fmt.Errorf("make room: %w", err))
	}
	s.configure("state: "+filepath.Join(small, "agent.json"), "coolDown: 9s")
	s.coolDown(9 * time.Second)
	s.eventually("the configuration is kept", func() error {
		_, err := os.Stat(filepath.Join(small, "agent.json.good"))
		return err
	})
}
