package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// quickstart returns the README's commands of a pod by hand, in their order.
func quickstart(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(block, "    ") && strings.Contains(block, "vpc serve") {
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
	commands := quickstart(t)
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
	}
	for _, want := range []string{`"address": "10.0.1.`, "agent:      ready", " used ", "1 received", "the VPC is removed"} {
		if !strings.Contains(seen, want) {
			t.Errorf("nowhere is %q:\n%s", want, seen)
		}
	}
}
