package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMemoryOutlivesTheProcessAndNotTheBoot(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "deep", "agent.json")}
	if text, err := f.Load(); text != nil || err != nil {
		t.Errorf("nothing saved: %s, %v", text, err)
	}
	for _, memory := range []string{`{"mode":"batch"}`, `{"mode":"burstable"}`} {
		if err := f.Save([]byte(memory)); err != nil {
			t.Fatal(err)
		}
		if text, err := f.Load(); string(text) != memory || err != nil {
			t.Errorf("saved %s, loaded %s, %v", memory, text, err)
		}
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), `"boot":"`, `"boot":"x`, 1)
	if err := os.WriteFile(f.Path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := f.Load(); text != nil || err != nil {
		t.Errorf("of another boot: %s, %v; want nothing", text, err)
	}
	if err := os.WriteFile(f.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); err == nil {
		t.Error("a damaged file is no error")
	}
}
