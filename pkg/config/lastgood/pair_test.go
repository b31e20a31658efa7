package lastgood

import (
	"os"
	"path/filepath"
	"testing"
)

// killed is what stops a write of a test, as a kill stops the agent.
type killed struct{}

// mortal is a file whose agent is killed before the change of files that left counts down to.
type mortal struct {
	File
	left *int
}

func (m mortal) live() {
	if *m.left--; *m.left < 0 {
		panic(killed{})
	}
}

func (m mortal) Keep(text []byte) error { m.live(); return m.File.Keep(text) }
func (m mortal) Remove()                { m.live(); m.File.Remove() }

// keepUntil keeps the text with that number of changes of files, and tells whether those were all.
func keepUntil(p Pair, text string, changes int) (all bool) {
	defer func() {
		if stop := recover(); stop != nil && stop != (killed{}) {
			panic(stop)
		}
	}()
	_, _, _ = keepIn(mortal{p.Durable, &changes}, mortal{p.Beside, &changes}, []byte(text))
	return true
}

// The newest text that was ever kept is read at the next start, whenever the agent is killed: what is
// read is the text of now or the one before it, and of now once that was written anywhere.
func TestTheNewestIsReadWhereverTheAgentWasKilled(t *testing.T) {
	const older, before, now = "a: 1\n", "a: 2\n", "a: 3\n"
	for name, lie := range map[string]struct{ durable, beside string }{
		"only the durable one":              {before, ""},
		"one beside, as the disk was full":  {older, before},
		"one beside, and none that endures": {"", before},
		"both the same":                     {before, before},
		"none":                              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for changes, all := 0, false; !all; changes++ {
				if changes > 9 {
					t.Fatal("the write does not end")
				}
				dir := t.TempDir()
				const of = "/etc/enipool/agent.yaml"
				p := Pair{Beside(filepath.Join(dir, "lib"), of), Beside(filepath.Join(dir, "run"), of)}
				for file, text := range map[File]string{p.Durable: lie.durable, p.Beside: lie.beside} {
					if text == "" {
						continue
					}
					if err := file.Keep([]byte(text)); err != nil {
						t.Fatal(err)
					}
				}
				all = keepUntil(p, now, changes)
				got, want := newest(t, p), now
				if !p.Durable.Holds([]byte(now)) && !p.Beside.Holds([]byte(now)) {
					want = lie.beside
					if want == "" {
						want = lie.durable
					}
				}
				if got != want || all && got != now {
					t.Errorf("killed after %d changes (all: %t): %q is read, want %q", changes, all, got, want)
				}
			}
		})
	}
}

// newest returns what a start would read, "" for nothing.
func newest(t *testing.T, p Pair) string {
	t.Helper()
	for _, f := range p.ByAge() {
		text, err := f.Read()
		if err == nil {
			return string(text)
		}
		if !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return ""
}
