package configfile

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

// waitFor waits until what is refused is as ok wants it.
func waitFor(t *testing.T, r *refusal, what string, ok func(text string) bool) {
	t.Helper()
	end := time.After(10 * time.Second)
	for {
		text := ""
		if s := r.Status(); s != nil {
			text = s.Error
		}
		if ok(text) {
			return
		}
		select {
		case <-r.changed:
		case <-end:
			t.Fatalf("%s: it is %q", what, text)
		}
	}
}

// watched is what takes over the changes of the file.
func watched(t *testing.T, ctx context.Context, path string) (*Reload, <-chan agentconf.Config) {
	t.Helper()
	s, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	r := newReload(s.Conf, io.Discard)
	r.NewFastPath(s.Conf)
	return r, r.acceptedConfigs(ctx, watchConfig(ctx, s.file, r.Log, r.refused))
}

func TestARefusedConfigurationIsRememberedUntilAGoodOneComes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("vpcCIDRs: [10.0.0.0/16]\nnode: n1\nrouting: rule\ncloud: {provider: aws}\nstate: "+path+".json\ncache: "+path+".cache\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("")
	r, files := watched(t, ctx, path)
	configure("coolDwn: 5s\n")
	waitFor(t, r.refused, "a key that does not exist", func(text string) bool { return strings.Contains(text, path+": coolDwn: ") })
	since := r.refused.Status().Since
	configure("coolDown: soon\n")
	waitFor(t, r.refused, "another error", func(text string) bool { return strings.Contains(text, `coolDown: "soon"`) })
	if got := r.refused.Status().Since; !got.Equal(since) {
		t.Errorf("refused since %s, want the first time, %s", got, since)
	}
	configure("coolDown: 5s\ncoolDown: 6s\n")
	waitFor(t, r.refused, "a key that is there twice", func(text string) bool {
		return strings.HasSuffix(text, `read configuration: line 8: mapping key "coolDown" already defined at line 7`)
	})
	configure("coolDown: 5s\n")
	select {
	case <-files:
	case <-time.After(10 * time.Second):
		t.Fatal("a good configuration was not taken over")
	}
	waitFor(t, r.refused, "a good configuration", func(text string) bool { return text == "" })
}

// That is told while there is time to put the file back. The
// folder may be gone, too, and another one come.
func TestAConfigurationThatIsGoneIsToldAndTakenOverWhenItIsBack(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	folder := filepath.Join(t.TempDir(), "enipool")
	path := filepath.Join(folder, "agent.yaml")
	text := "vpcCIDRs: [10.0.0.0/16]\nnode: n1\nrouting: rule\ncloud: {provider: aws}\nstate: " + path + ".json\ncache: " + path + ".cache\n"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(folder, 0o700))
	must(os.WriteFile(path, []byte(text), 0o600))
	r, files := watched(t, ctx, path)
	taken := func(what string) {
		t.Helper()
		select {
		case <-files:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the configuration was not taken over", what)
		}
		waitFor(t, r.refused, what, func(text string) bool { return text == "" })
	}
	gone := func(text string) bool { return strings.Contains(text, "agent.yaml: no such file or directory") }
	for _, what := range []string{path, folder} {
		must(os.Rename(what, what+".away"))
		waitFor(t, r.refused, what+" is moved away", gone)
		must(os.Rename(what+".away", what))
		taken(what + " is back, as it was")
	}
	must(os.WriteFile(path, []byte(text+"coolDown: 5s\n"), 0o600))
	taken("changed in the folder that is back")
}
