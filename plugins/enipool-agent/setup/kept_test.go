package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/lastgood"
	"github.com/enipool/enipool/pkg/install"
)

// The init container comes before the agent, and must not keep it from starting.
func TestAnInstallationGoesOnWithWhatWasInForce(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "run", "agent.json")
	good := "vpcCIDRs: [10.0.0.0/16]\nnode: n1\nrouting: rule\nfirewall: nftables\ncloud: {provider: aws}\nstate: " + state + "\n"
	if err := os.WriteFile(path, []byte(good+"colour: red\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := install.Tree{Root: t.TempDir()}
	f := installFlags{config: path}
	if _, err := f.readNode(host); err == nil || !strings.Contains(err.Error(), "colour: unknown key") {
		t.Errorf("nothing is kept: %v", err)
	}
	at, err := host.Target(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := lastgood.Beside(at, path).Keep([]byte(good + "cache: /run/other/node.cache\n")); err != nil {
		t.Fatal(err)
	}
	conf, err := f.readNode(host)
	if err != nil || conf.Cache != "/run/other/node.cache" {
		t.Fatalf("cache %s, %v", conf.Cache, err)
	}
	if lines := conf.warningLines(); len(lines) != 1 || lines[0].What != install.Warning || !strings.Contains(lines[0].Text, at+".good: "+path+": colour: unknown key") {
		t.Errorf("%v", lines)
	}
	f.dryRun = true // a person asks
	if _, err := f.readNode(host); err == nil || !strings.Contains(err.Error(), "colour: unknown key") {
		t.Error(err)
	}
}
