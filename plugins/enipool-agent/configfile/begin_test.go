package configfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/lastgood"
	"github.com/enipool/enipool/plugins/enipool-agent/cli"
)

// place is a node's folder with a configuration file.
type place struct {
	t     *testing.T
	path  string
	state string
}

func newPlace(t *testing.T) place {
	dir := t.TempDir()
	return place{t, filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "run", "agent.json")}
}

func (p place) good(more string) string {
	return "vpcCIDRs: [10.0.0.0/16]\nnode: n1\nrouting: rule\nfirewall: nftables\ncloud: {provider: aws}\nstate: " + p.state + "\n" + more
}

func (p place) write(text string) {
	p.t.Helper()
	if err := os.WriteFile(p.path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) begin() (b Begun, said string, err error) {
	p.t.Helper()
	var log bytes.Buffer
	b, err = BeginOrLastGood(Flags{Config: p.path}, &log)
	return b, log.String(), err
}

// mustBegin is a start at which nothing is wrong.
func (p place) mustBegin() Begun {
	p.t.Helper()
	b, _, err := p.begin()
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

func TestAStartWithAWrongFileGoesOnWithWhatWasInForce(t *testing.T) {
	p := newPlace(t)
	p.write(p.good("coolDown: 7s\n"))
	b, said, err := p.begin()
	if err != nil || strings.Contains(said, "ERROR") || b.Reload.refused.Status() != nil {
		t.Fatal(said, err)
	}
	b.Reload.keepSource(b.Source)
	for what, wrong := range map[string]string{
		"a key":                            p.good("colour: red\n"),
		"no YAML":                          "state: " + p.state + "\npool: [\n",
		"two documents":                    p.good("---\nnode: a\n"),
		"no cluster there":                 p.good("kubernetes: {enabled: true, kubeconfig: " + p.state + "}\n"),
		"groups that the cloud can't have": strings.Replace(p.good(""), "{provider: aws}", "{provider: baidu, securityGroups: [g-1, esg-1]}", 1),
	} {
		p.write(wrong)
		b, said, err := p.begin()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		r := b.Reload.refused.Status()
		if r == nil || !r.Start || r.Kept != p.state+".good" || !strings.Contains(said, "level=ERROR") || !strings.Contains(said, p.state+".good") {
			t.Errorf("%s: %+v, said %s", what, r, said)
		}
		if got := b.Conf.Settings.CoolDown.String(); got != "7s" {
			t.Errorf("%s: a cool-down of %s", what, got)
		}
	}
	if err := os.Remove(p.path); err != nil { // its last folder is not known then
		t.Fatal(err)
	}
	if _, _, err := p.begin(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// With an operator there is no cloud to open, and no agent without the API server.
func TestAnOperatedNodeOpensNoCloud(t *testing.T) {
	p := newPlace(t)
	operated := func(more string) string {
		return strings.Replace(p.good(more), "{provider: aws}", "{provider: operator, endpoint: 'unix:///of/before'}", 1)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write(operated("kubernetes: {enabled: true, kubeconfig: " + config + "}\n"))
	b, _, err := p.begin()
	if err != nil || b.Client != nil || b.Reload.refused.Status() != nil {
		t.Fatalf("%v, %v", b.Client, err)
	}
	if _, err := BeginOrLastGood(Flags{Config: p.path, Once: true}, io.Discard); err == nil || !strings.Contains(err.Error(), "the operator plans for this node") {
		t.Error(err)
	}
	p.write(operated(""))
	if _, _, err := p.begin(); err == nil || !strings.Contains(err.Error(), "needs the API server") {
		t.Error(err)
	}
}

func TestWhoWaitsForTheAnswerGetsIt(t *testing.T) {
	p := newPlace(t)
	p.write(p.good(""))
	b := p.mustBegin()
	b.Reload.keepSource(b.Source)
	p.write(p.good("colour: red\n"))
	for _, f := range []Flags{{Config: p.path, Once: true}, {Config: p.path, DryRun: true}} {
		if _, err := BeginOrLastGood(f, io.Discard); err == nil || !strings.Contains(err.Error(), "colour: unknown key") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestAWrongFileAtTheFirstStartIsAnError(t *testing.T) {
	p := newPlace(t)
	p.write(p.good("colour: red\n"))
	if _, _, err := p.begin(); err == nil || err.Error() != p.path+": colour: unknown key (line 7)" {
		t.Error(err)
	}
	// Nor does an agent of another file lend its own.
	if err := lastgood.Beside(p.state, "/etc/other.yaml").Keep([]byte(p.good(""))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.begin(); err == nil || err.Error() != p.path+": colour: unknown key (line 7)" {
		t.Error(err)
	}
}

// A release may have stopped to know what an earlier one kept, and a file may be damaged.
func TestWhatIsKeptMayBeWrongToo(t *testing.T) {
	p := newPlace(t)
	p.write(p.good("colour: red\n"))
	kept := lastgood.Beside(p.state, p.path)
	for _, tt := range []struct{ text, want string }{
		{p.good("shape: round\n"), p.state + ".good: shape: unknown key (line 7)"},
		{p.good("routing: map\n"), `mapping key "routing" already defined`},
	} {
		if err := kept.Keep([]byte(tt.text)); err != nil {
			t.Fatal(err)
		}
		_, _, err := p.begin()
		if err == nil || !strings.HasPrefix(err.Error(), p.path+": colour: unknown key (line 7)\nthe configuration that was in force last can't be used either: ") ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v\nwant %s", err, tt.want)
		}
		var unfit *cli.NodeError
		if errors.As(err, &unfit) {
			t.Error("the exit code is the node's")
		}
	}
}

// What can't be kept is told, and kept as soon as it can be.
func TestWhatCanNotBeKeptIsToldAndTriedAgain(t *testing.T) {
	p := newPlace(t)
	p.write(p.good(""))
	b := p.mustBegin()
	if err := os.WriteFile(filepath.Dir(p.state), nil, 0o600); err != nil { // where the folder should be
		t.Fatal(err)
	}
	r := b.Reload
	r.keepSource(b.Source)
	r.refused.refuseFile(errors.New("colour: unknown key"))
	if s := r.refused.Status(); s.Kept != "" || !strings.Contains(s.NotKept, "not a directory") || !strings.Contains(s.String(), "which would fail (keep the configuration: ") {
		t.Errorf("%+v: %s", s, s)
	}
	if err := os.Remove(filepath.Dir(p.state)); err != nil {
		t.Fatal(err)
	}
	r.keepStill()
	if s := r.refused.Status(); s.Kept != p.state+".good" || s.NotKept != "" {
		t.Errorf("%+v", s)
	}
	for what, meddle := range map[string]func(path string) error{
		"removed": os.Remove,
		"changed": func(path string) error { return os.WriteFile(path, []byte("node: other\n"), 0o600) },
	} {
		if err := meddle(p.state + ".good"); err != nil {
			t.Fatal(err)
		}
		r.keepStill()
		if text, err := lastgood.Beside(p.state, p.path).Read(); err != nil || string(text) != p.good("") {
			t.Errorf("%s: %q, %v", what, text, err)
		}
	}
}

// What is in force is kept where a reboot leaves it, and where that can't be written until a reboot.
func TestWhatIsKeptOutlastsAReboot(t *testing.T) {
	p := newPlace(t)
	p.write(p.good(""))
	r, disk := p.mustBegin().Reload, filepath.Join(t.TempDir(), "lib")
	durable, beside := lastgood.Beside(filepath.Join(disk, "agent.json"), p.path), lastgood.Beside(p.state, p.path)
	text := []byte(p.good(""))
	r.kept = keeping{Pair: lastgood.Pair{Durable: durable, Beside: beside}, text: text}
	kept := func(where lastgood.File, why string) {
		t.Helper()
		s := r.refused.Status()
		if s.Kept != where.Path || s.NotKept != "" || !strings.Contains(s.UntilReboot, why) || (why == "") != (s.UntilReboot == "") {
			t.Errorf("%+v: %s", s, s)
		}
		for _, f := range []lastgood.File{durable, beside} {
			if f.Holds(text) != (f == where) {
				t.Errorf("%s: it is there: %t", f.Path, f.Holds(text))
			}
		}
	}
	r.refused.refuseFile(errors.New("colour: unknown key"))
	if err := os.WriteFile(disk, nil, 0o600); err != nil { // where the folder should be
		t.Fatal(err)
	}
	r.writeKept()
	kept(beside, "not a directory")
	if s := r.refused.Status().String(); !strings.Contains(s, "until the node is rebooted (keep the configuration: ") {
		t.Error(s)
	}
	if err := os.Remove(disk); err != nil {
		t.Fatal(err)
	}
	r.keepStill()
	kept(durable, "")
	if err := os.Remove(durable.Path); err != nil {
		t.Fatal(err)
	}
	r.keepStill()
	kept(durable, "")
}

// Where the agent's own file moves the kept one moves along.
func TestWhatIsKeptGoesWhereTheStateIs(t *testing.T) {
	p := newPlace(t)
	p.write(p.good(""))
	b := p.mustBegin()
	b.Reload.keepSource(b.Source)
	old := p.state + ".good"
	p.state = filepath.Join(t.TempDir(), "agent.json")
	p.write(p.good(""))
	next, err := Read(p.path)
	if err != nil {
		t.Fatal(err)
	}
	b.Reload.keepSource(next)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one is left: %v", err)
	}
	p.write(p.good("colour: red\n"))
	if b, _, err := p.begin(); err != nil || b.Conf.State != p.state {
		t.Errorf("%s, %v", b.Conf.State, err)
	}
}

func TestEventsTellOfARefusedConfigurationOnce(t *testing.T) {
	p := newPlace(t)
	p.write(p.good(""))
	b := p.mustBegin()
	var told []string
	r := b.Reload.refused
	r.refuseFile(errors.New("colour: unknown key"))
	r.tellTo(func(warning bool, reason, message string) {
		if warning != strings.Contains(message, "unknown key") {
			t.Errorf("%t: %s", warning, message)
		}
		told = append(told, reason)
	})
	r.refuseFile(errors.New("colour: unknown key"))
	r.refuseFile(errors.New("shape: unknown key"))
	r.noteAccepted()
	r.noteAccepted()
	if want := "ConfigurationRefused ConfigurationRefused ConfigurationAccepted"; strings.Join(told, " ") != want {
		t.Errorf("%q, want %q", told, want)
	}
}

// After a reboot nothing is left in /run.
func TestAStartAfterARebootGoesOnWithWhatWasInForce(t *testing.T) {
	p, disk := newPlace(t), t.TempDir()
	on := func(path string) string { return filepath.Join(disk, path) }
	text := strings.ReplaceAll(p.good(""), p.state, "/run/enipool/agent.json")
	f := keepingFor("/run/enipool/agent.json", p.path, nil)
	f.Durable.Path, f.Beside.Path = on(f.Durable.Path), on(f.Beside.Path)
	keep := func(f lastgood.File, text string) {
		t.Helper()
		if err := f.Keep([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	keep(f.Durable, text)
	wrong := text + "colour: red\n"
	if s, from, err := ReadLastGood(p.path, []byte(wrong), on); err != nil || from != f.Durable || string(s.Text) != text {
		t.Errorf("from %s, %v", from.Path, err)
	}
	keep(f.Beside, text+"coolDown: 9s\n") // the disk was full
	if s, from, err := ReadLastGood(p.path, []byte(wrong), on); err != nil || from != f.Beside || string(s.Text) != text+"coolDown: 9s\n" {
		t.Errorf("from %s, %v", from.Path, err)
	}
}

// What the next start would stop at is told while the agent runs, and not taken for good.
func TestAChangeThatOnlyAStartWouldStopAtIsRefused(t *testing.T) {
	p := newPlace(t)
	p.write(p.good("cache: " + p.state + ".cache\n"))
	b := p.mustBegin()
	b.Reload.NewFastPath(b.Conf)
	b.Reload.keepSource(b.Source)
	files := make(chan Source)
	taken := b.Reload.acceptedConfigs(t.Context(), files)
	p.write(p.good("cache: " + p.state + ".cache\nkubernetes: {enabled: true, kubeconfig: " + p.state + ".none}\n"))
	bad, err := Read(p.path)
	if err != nil {
		t.Fatal(err)
	}
	files <- bad
	waitFor(t, b.Reload.refused, "a kubeconfig that is not there", func(text string) bool { return strings.Contains(text, "read the kubeconfig") })
	if text, err := lastgood.Beside(p.state, p.path).Read(); err != nil || string(text) != string(b.Text) {
		t.Errorf("%q is kept, %v", text, err)
	}
	select {
	case <-taken:
		t.Error("the loop got it")
	default:
	}
}
