package wire

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

func TestAddressesAndRangesAreOfTheirFamily(t *testing.T) {
	for text, f := range map[string]eni.Family{"10.0.0.1": eni.IPv4, "2001:db8::1": eni.IPv6} {
		if a, err := Addr(text, f); err != nil || a.String() != text {
			t.Errorf("%s is read as %s, %v", text, a, err)
		}
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		for _, text := range []string{"", "x", "10.0.0.300", "fe80::1%eth0", "::ffff:10.0.0.1", map[eni.Family]string{eni.IPv4: "::1", eni.IPv6: "10.0.0.1"}[f]} {
			if a, err := Addr(text, f); err == nil || a.IsValid() {
				t.Errorf("%q is read as %s address %s", text, f, a)
			}
		}
	}
	for text, good := range map[string]bool{"10.0.0.0/24": true, "10.0.0.0/30": true, "10.0.0.0/31": false, "10.0.0.1/24": false, "2001:db8::/64": false, "": false} {
		if p, err := Range(text, eni.IPv4); (err == nil) != good || p.IsValid() != good {
			t.Errorf("%q is read as %s, %v", text, p, err)
		}
	}
	if got := Texts([]netip.Addr{netip.MustParseAddr("10.0.0.1")}); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("written as %v", got)
	}
}

func TestNoLineTellsASecret(t *testing.T) {
	s := Secrets{Also: regexp.MustCompile(`sig=\S+`)}
	s.Keep("a-first-key", "", "abc")
	for range 9 {
		s.Keep("second-key", "second-secret")
	}
	if s.Hide("a-first-key") != "***" {
		t.Error("words that come again displace others")
	}
	for _, w := range []string{"second", "third", "fourth", "fifth", "sixth"} {
		s.Keep(w+"-key", w+"-secret")
	}
	got := s.Line("abc\n fourth-key and  third-secret, sig=0123\tx " + strings.Repeat("y", 500))
	if !strings.HasPrefix(got, "abc *** and ***, *** x yyy") || len(got) > 420 || strings.Contains(got, "\n") {
		t.Errorf("a line is %q", got)
	}
	if got := s.Hide("a-first-key"); got == "***" {
		t.Error("words are kept for ever")
	}
}

func TestTheClockIsThatOfTheLastAnswer(t *testing.T) {
	var c Clock
	if _, known := c.Skew(); known {
		t.Error("without an answer the cloud's time is known")
	}
	now := time.Now()
	c.Note(now, now.Add(time.Hour))
	c.Note(now, now.Add(-time.Minute))
	if ahead, known := c.Skew(); !known || ahead != time.Minute {
		t.Errorf("ahead by %v, %v", ahead, known)
	}
}

func TestOnlyNearURLsMayBeWithoutTLS(t *testing.T) {
	for text, good := range map[string][2]bool{ // for an API, and on the machine's link
		"https://ec2.example.org": {true, true}, "https://ec2.example.org:8443/": {true, true}, "http://127.0.0.1:5000": {true, true},
		"http://localhost:5000": {true, true}, "http://[::1]:5000": {true, true}, "http://169.254.169.254": {false, true},
		"http://[fd00:ec2::254]": {false, true}, "http://[fe80::1]": {false, true}, "http://ec2.example.org": {}, "http://10.0.0.1": {},
		"ec2.example.org": {}, "ftp://127.0.0.1": {}, "": {}, "https://user:word@ec2.example.org": {}, "https://ec2.example.org?x=1": {},
		"https://ec2.example.org/v1": {}, "unix:///run/x": {}, "http://localhost.example.org": {},
	} {
		for i, onLink := range []bool{false, true} {
			err := CheckURL(text, "endpoint", onLink)
			if (err == nil) != good[i] {
				t.Errorf("%q, on the link %v: %v", text, onLink, err)
			}
			if err != nil && strings.Contains(err.Error(), "word") {
				t.Errorf("%q is told: %v", text, err)
			}
		}
	}
}

func TestARequestIsSentWhenItIsWritten(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, up := range []bool{true, false} {
		if !up {
			server.Close()
		}
		var sent Sent
		r, err := http.NewRequestWithContext(sent.Trace(t.Context()), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r); err == nil {
			_ = resp.Body.Close()
		}
		if sent.Load() != up {
			t.Errorf("with the server up %v a request was sent: %v", up, sent.Load())
		}
	}
}
