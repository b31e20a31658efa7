package digest

import (
	"crypto/sha256"
	"strings"
	"testing"
)

func TestTheSumIsThatOfTheStandardLibrary(t *testing.T) {
	for n := range 300 {
		text := strings.Repeat("x", n) + "é|\x00"
		if got, want := Sum256(text), sha256.Sum256([]byte(text)); got != want {
			t.Fatalf("%d bytes: %x, want %x", len(text), got, want)
		}
	}
}

func FuzzSum256(f *testing.F) {
	f.Add("pods|abc|eth0")
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := Sum256(text), sha256.Sum256([]byte(text)); got != want {
			t.Errorf("%q: %x, want %x", text, got, want)
		}
	})
}
