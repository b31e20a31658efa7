package bce

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	endpoint "github.com/enipool/enipool/test/fakecloud/bce"
)

// keysUntil are a keyring whose first credentials end so far from now. Later ones are not to
// be had.
func keysUntil(end time.Duration) (*keyring, *int) {
	asked := 0
	return &keyring{source: func(context.Context) (Credentials, error) {
		if asked++; asked > 1 {
			return Credentials{}, errors.New("nobody answers")
		}
		return Credentials{AccessKey: accessKey, SecretKey: secretKey, Expires: time.Now().Add(end)}, nil
	}}, &asked
}

func TestCredentialsThatAreStillGoodOutliveAFailedRenewal(t *testing.T) {
	for name, tt := range map[string]struct {
		end    time.Duration
		refuse bool // by the cloud, which may be for another reason
		good   bool
	}{
		"in their last minute":         {time.Minute, false, true},
		"refused, with an hour to go":  {time.Hour, true, true},
		"refused in their last minute": {time.Minute, true, true},
		"ended":                        {-time.Second, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, asked := keysUntil(tt.end)
			first, err := k.get(t.Context())
			must(t, err)
			if tt.refuse {
				k.markRefused(first)
			}
			again, err := k.get(t.Context())
			if (err == nil) != tt.good || tt.good && again != first {
				t.Errorf("the renewal gives key %q, %v", again.AccessKey, err)
			}
			if *asked != 2 {
				t.Errorf("the source was asked %d times", *asked)
			}
		})
	}
}

// Without credentials no request is sent, so nothing has happened; whether a person has to
// do something depends on why there are none.
func TestAChangeWithoutCredentialsHasNotHappened(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		kind   error
	}{
		"the metadata is overloaded":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, cloud.ErrUnavailable},
		"the metadata limits its rate": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, cloud.ErrUnavailable},
		"the metadata breaks off":      {func(w http.ResponseWriter, _ *http.Request) { hijack(t, w, "200 OK", "{"+cut) }, cloud.ErrUnavailable},
		"the instance has no role":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, cloud.ErrForbidden},
		"the metadata does not know":   {func(http.ResponseWriter, *http.Request) {}, cloud.ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			withKeys(t)
			t.Setenv("BCE_ACCESS_KEY_ID", "")
			t.Setenv("BCE_SECRET_ACCESS_KEY", "")
			s := newSite(t, setup{endpoint: endpoint.Options{Role: true}})
			meta := s.Metadata("i-n1")
			d, err := New(Options{Endpoint: s.url, Metadata: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "sts-credential") {
					tt.answer(w, r)
					return
				}
				meta.ServeHTTP(w, r)
			}))})
			must(t, err)
			_, err = d.Create(t.Context(), driver.Create{Self: driver.Self{Instance: "i-n1"}, Subnet: "sbn-a", Groups: []string{"g-1"}, Token: "t",
				Mark: driver.Mark{Instance: "i-n1", Index: 1, Token: "t"}})
			if cloud.Kind(err) != tt.kind || s.Calls()["CreateEni"] > 0 {
				t.Errorf("%v is not %v; the cloud was called %v", err, tt.kind, s.Calls())
			}
		})
	}
}
