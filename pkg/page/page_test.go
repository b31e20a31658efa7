package page

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAPageMayHaveItsOwnPartsAlone(t *testing.T) {
	w := httptest.NewRecorder()
	p := Live()
	p.Protect(w)
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{hashSource(string(p.Styles[0])), hashSource(string(p.Styles[1])), hashSource(string(p.Scripts[0]))} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s", part)
		}
	}
	if strings.Count(policy, "sha256-") != 3 || !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Errorf("the policy is %s", policy)
	}
}

// What failed is tried again, and what was made lasts a second.
func TestAPageIsMadeOnceASecond(t *testing.T) {
	kept := Kept{For: time.Second}
	noon, made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
	render := func(fail error) func(io.Writer) error {
		return func(w io.Writer) error {
			made++
			_, _ = w.Write([]byte{byte('0' + made)})
			return fail
		}
	}
	for _, tt := range []struct {
		after time.Duration
		fail  error
		want  string
	}{{0, errors.New("no"), ""}, {0, nil, "2"}, {time.Second - 1, nil, "2"}, {time.Second, nil, "3"}, {0, nil, "4"}} {
		text, err := kept.Read(noon.Add(tt.after), render(tt.fail))
		if string(text) != tt.want || (err != nil) != (tt.fail != nil) {
			t.Errorf("after %s: %q, %v; want %q", tt.after, text, err, tt.want)
		}
	}
}
