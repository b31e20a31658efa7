package bce

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// refusing answers some requests in the place of the API.
type refusing struct {
	http.RoundTripper
	answer func(*http.Request) *http.Response
}

func (r *refusing) RoundTrip(q *http.Request) (*http.Response, error) {
	if a := r.answer(q); a != nil {
		return a, nil
	}
	return r.RoundTripper.RoundTrip(q)
}

// Of one of the instances the API says that this role may not ask: another team's, whose cluster
// has the same name. The leaks of the others go all the same.
func TestASweepGoesOnBehindAnInstanceThatMayNotBeDescribed(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	c, w := s.open(t, "i-n1", engine.Options{Subnets: []string{"sbn-a"}, Cluster: "prod"})
	leaked := []string{}
	for _, instance := range []string{"i-theirs", "i-ours"} {
		must(t, s.Update(func(tx *sim.Tx) error {
			i, err := tx.Create(sim.Create{Subnet: "sbn-a", Name: nameOf(instance), Groups: []string{"g-1"},
				Description: "enipool 1 " + instance + " 1 1600000000000 tok prod -"})
			leaked = append(leaked, i.ID)
			return err
		}))
	}
	w.base = &refusing{RoundTripper: w.base, answer: func(q *http.Request) *http.Response {
		if !strings.Contains(q.URL.Path, "i-theirs") {
			return nil
		}
		return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Header: http.Header{"Content-Type": {"application/json"}}, Request: q,
			Body: io.NopCloser(strings.NewReader(`{"code": "AccessDenied", "message": "no permission on i-theirs", "requestId": "r"}`))}
	}}
	for range 3 {
		_, _ = c.Sweep(t.Context(), time.Millisecond)
		time.Sleep(5 * time.Millisecond)
	}
	var left []sim.Interface
	s.View(0, func(tx *sim.Tx) { left = tx.Interfaces() })
	for _, i := range left {
		if i.ID == leaked[1] {
			t.Errorf("%s, of i-ours, is left for ever", i.ID)
		}
	}
}
