package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A token that the cut goes through has lost the key by which it is found.
func TestTheEndOfALargeFileBeginsWithALine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	end := "password=abc\n" + strings.Repeat("x", most-len("password=abc\n"))
	if err := os.WriteFile(name, []byte("token=S3CRET-"+end[:len(end)-1]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := readEnd(name)
	if err != nil || len(text) == 0 || strings.Contains(string(text), "password") {
		t.Errorf("%.40q, %v", text, err)
	}
	if err := os.WriteFile(name, []byte("token=abc\nlast\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readEnd(name); err != nil || string(text) != "token=abc\nlast\n" {
		t.Errorf("a small file: %q, %v", text, err)
	}
}

// What has nobody at its other end keeps nobody waiting.
func TestAPipeIsNoPart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readEnd(name); err == nil {
		t.Errorf("it was read: %q", text)
	}
}
