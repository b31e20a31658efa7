package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

func TestARefusedConfigurationIsRememberedUntilAGoodOneComes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("vpcCIDRs: [10.0.0.0/16]\nnode: n1\nrouting: rule\ncloud: {provider: aws}\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("")
	conf, err := readConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	r := newReload(conf, io.Discard)
	files := watchConfig(ctx, path, r.log, r.refused)
	configure("coolDwn: 5s\n")
	waitFor(t, r.refused, "a key that does not exist", func(text string) bool { return strings.Contains(text, path+": coolDwn: ") })
	since := r.refused.Status().Since
	configure("coolDown: soon\n")
	waitFor(t, r.refused, "another error", func(text string) bool { return strings.Contains(text, `coolDown: "soon"`) })
	if got := r.refused.Status().Since; !got.Equal(since) {
		t.Errorf("refused since %s, want the first time, %s", got, since)
	}
	configure("coolDown: 5s\n")
	select {
	case <-files:
	case <-time.After(10 * time.Second):
		t.Fatal("a good configuration was not taken over")
	}
	waitFor(t, r.refused, "a good configuration", func(text string) bool { return text == "" })
}
