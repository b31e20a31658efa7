package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// block returns the README's commands of the block that has these words, in their order.
func block(t *testing.T, words string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(block, "    ") && strings.Contains(block, words) {
			for line := range strings.SplitSeq(block, "\n") {
				command, _, _ := strings.Cut(line, " # ")
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	return commands
}

// A newcomer types them one after the other, as they stand.
func TestTheCommandsOfTheREADMEBringAPodByHand(t *testing.T) {
	nettest.Need(t)
	binDir(t)
	commands := block(t, "vpc serve")
	if len(commands) < 6 {
		t.Fatalf("the README has %q", commands)
	}
	t.Cleanup(func() { _ = exec.Command("../../.build/enipoolctl", "vpc", "stop").Run() }) // for a test that has failed before
	seen := ""
	for _, c := range commands {
		if strings.HasPrefix(c, "make ") {
			continue // done, and the programs are those that other tests run now
		}
		cmd := exec.Command("bash", "-c", c)
		cmd.Dir = "../.."
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
		seen += string(out)
		if strings.Contains(c, "cnitool.sh add") {
			debug(t)
		}
	}
	if _, err := os.Stat("/var/lib/enipool-vpc/node-1"); err == nil {
		t.Error("/var/lib/enipool-vpc/node-1 stays: what the agent keeps over a reboot")
	}
	for _, want := range []string{`"address": "10.0.1.`, "agent:      ready", " used ", "1 received", "the VPC is removed"} {
		if !strings.Contains(seen, want) {
			t.Errorf("nowhere is %q:\n%s", want, seen)
		}
	}
}

// debug types the commands for a node with a pod, there, as they stand. Each answers: 1 is an answer too, as that nobody has the port.
func debug(t *testing.T) {
	t.Helper()
	commands := block(t, "pool show --port")
	if len(commands) < 8 {
		t.Fatalf("the README has %q", commands)
	}
	build, dir := binDir(t), t.TempDir() // a bundle is written here
	for _, c := range commands {
		if strings.Contains(c, "pool load") {
			continue // refused beside an agent: other tests are of it
		}
		c = strings.NewReplacer("/run/enipool/node.cache", `"$ENIPOOL_CACHE"`, "scripts/", build+"/../scripts/").Replace(c)
		cmd := exec.Command(build+"/enipoolctl", "vpc", "exec", "node-1", "--", "bash", "-c", "PATH="+build+":$PATH; "+c)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); err != nil && code != 1 || len(out) == 0 {
			t.Errorf("%s: %v\n%s", c, err, out)
		}
	}
}
