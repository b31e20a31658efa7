package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// page is a test whose failures are only written down.
type page struct {
	testing.TB
	text strings.Builder
}

func (p *page) Name() string                   { return "TestX" }
func (p *page) Helper()                        {}
func (p *page) Log(args ...any)                { fmt.Fprintln(&p.text, args...) }
func (p *page) Logf(format string, a ...any)   { fmt.Fprintf(&p.text, format+"\n", a...) }
func (p *page) Error(args ...any)              { p.Log(args...) }
func (p *page) Errorf(format string, a ...any) { p.Logf(format, a...) }
func (p *page) Fatal(args ...any)              { p.Log(args...) }
func (p *page) Fatalf(format string, a ...any) { p.Logf(format, a...) }

func TestReasonsAreToldAgainAfterTheLogs(t *testing.T) {
	var out page
	r := &reasons{TB: &out}
	r.repeat()
	if out.text.Len() > 0 {
		t.Errorf("a test that has not failed says %q", out.text.String())
	}
	r.Error("one", errors.New("no pod"))
	r.Errorf("two: %d", 2)
	r.Logf("pages of logs")
	r.Fatal("three")
	r.Fatalf("four: %s", strings.Repeat("x", 2*mostOfOne))
	for range mostReasons {
		r.Error("more")
	}
	r.Logf("pages of logs")
	r.repeat()
	_, last, _ := strings.Cut(out.text.String(), "pages of logs\nthree")
	_, last, _ = strings.Cut(last, "pages of logs\n")
	want := "TestX failed:\none no pod\ntwo: 2\nthree\nfour: " + strings.Repeat("x", mostOfOne-len("four: ")) + "...\n" +
		strings.Repeat("more\n", mostReasons-4)
	if last != want {
		t.Errorf("the end is\n%s\nwant\n%s", last, want)
	}
}
