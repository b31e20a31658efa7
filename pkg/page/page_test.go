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
	kept, noon, made := Kept{For: time.Second}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
	now := noon
	for _, tt := range []struct {
		after, waits, takes time.Duration // when somebody comes, how long somebody else makes a page then, and how long it takes if none is kept
		fail                error
		want                string
	}{
		{0, 0, 0, errors.New("no"), ""},
		{0, 0, 0, nil, "2"},
		{time.Second - 1, 0, 0, nil, "2"},
		{time.Second, 0, 30 * time.Second, nil, "3"},
		{2 * time.Second, 30 * time.Second, 0, nil, "3"}, // it came while that was made, and waited for it
		{32*time.Second - 1, 0, 0, nil, "3"},
		{32 * time.Second, 0, 0, nil, "4"},
	} {
		now = noon.Add(tt.after)
		clock := func() time.Time {
			is := now
			now = now.Add(tt.waits)
			return is
		}
		text, err := kept.Read(clock, func(w io.Writer) error {
			made++
			now = now.Add(tt.takes)
			_, _ = w.Write([]byte{byte('0' + made)})
			return tt.fail
		})
		if string(text) != tt.want || (err != nil) != (tt.fail != nil) {
			t.Errorf("after %s: %q, %v; want %q", tt.after, text, err, tt.want)
		}
	}
}
