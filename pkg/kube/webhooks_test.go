package kube

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/enipool/enipool/pkg/eni"
)

// hooked is a cluster with a webhook for some requests that does not answer.
type hooked struct {
	*cluster
	where string // method and path of a request
}

// RoundTrip answers one request.
func (h hooked) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method+" "+r.URL.Path == h.where {
		return h.refuse(r, apierrors.NewInternalError(errors.New(`failed calling webhook "team.example.com": no endpoints available`))), nil
	}
	return h.cluster.RoundTrip(r)
}

// startOver is start for a cluster that is reached over something else.
func startOver(t *testing.T, over http.RoundTripper, c *cluster, log *slog.Logger) *Node {
	t.Helper()
	config := rest.CopyConfig(c.config())
	config.Transport = over
	n, err := New(Options{Node: here, Config: config, Log: log, Taint: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return n
}

func TestAWebhookOfOneNamespaceHoldsUpNoEventsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		n := startOver(t, hooked{c, "POST /api/v1/namespaces/team/events"}, c, nil)
		n.Warn(eni.Pod{UID: "1", Namespace: "team", Name: "a"}, "NoAddress", "x")
		n.Warn(eni.Pod{UID: "2", Namespace: "shop", Name: "b"}, "NoAddress", "x")
		n.Report(faulty(20))
		time.Sleep(time.Minute)
		expectEvents(t, c, "Warning Pod shop/b(2) NoAddress: x", "Warning Node /node-1(uid-1) SubnetExhausted: 3 pods have no address")
	})
}

// What the cloud refused an hour ago is not what is the matter now.
func TestAnEventThatWaitedSaysWhenItHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down = errors.New("no route to host")
		n, _ := start(t, c, Options{})
		happened := time.Now()
		for _, name := range []string{"a", "b"} { // the first is under way, the second waits
			n.Warn(eni.Pod{UID: name, Namespace: "shop", Name: name}, "NoAddress", "x")
		}
		time.Sleep(time.Hour)
		c.do(func() { c.down = nil })
		time.Sleep(time.Minute)
		expectEvents(t, c, "Warning Pod shop/a(a) NoAddress: x", "Warning Pod shop/b(b) NoAddress: x")
		c.do(func() {
			for at, o := range c.objects {
				if e, is := o.(*corev1.Event); is && !e.LastTimestamp.Time.Equal(happened.Truncate(time.Second)) {
					t.Errorf("%s happened at %s, told as %s", at, happened, e.LastTimestamp)
				}
			}
		})
	})
}

// Where a webhook does not answer, the API server does: the log names the webhook, once, and does not
// tell of a server that comes and goes.
func TestAWebhookThatDoesNotAnswerIsToldAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		var seen journal
		n := startOver(t, hooked{c, "PATCH /api/v1/nodes/" + here + "/status"}, c, logger(&seen, slog.LevelInfo))
		n.Report(faulty(20))
		for range 120 {
			n.Warn(eni.Pod{UID: "1", Namespace: "shop", Name: "a"}, "NoAddress", "x") // other requests are answered
			time.Sleep(5 * time.Second)
		}
		got := seen.String()
		for _, want := range []string{
			`msg="the API server fails to do a request; look at the webhooks for it and at the server's log" request="PATCH nodes/status" answer="500 Internal Server Error"`,
			`failed calling webhook \"team.example.com\"`,
		} {
			if strings.Count(strings.ReplaceAll(got, `\\\"`, `\"`), want) != 1 {
				t.Errorf("want once %s, got:\n%s", want, got)
			}
		}
		if strings.Count(got, "\n") != 2 {
			t.Errorf("log:\n%s", got)
		}
	})
}

// limited is a cluster that has no room for requests of a kind, as priority and fairness say it.
type limited struct {
	*cluster
	where string
}

// RoundTrip answers one request.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method+" "+r.URL.Path != l.where {
		return l.cluster.RoundTrip(r)
	}
	answer := l.refuse(r, apierrors.NewTooManyRequests("too many requests, please try again later", 1))
	answer.Header.Set("Retry-After", "1")
	return answer, nil
}

func TestWritesThatTheAPIServerHasNoRoomForAreToldWhenThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		var seen journal
		n := startOver(t, limited{c, "PATCH /api/v1/nodes/" + here + "/status"}, c, logger(&seen, slog.LevelInfo))
		n.Report(faulty(20))
		time.Sleep(5 * time.Second)
		if got := seen.String(); got != "" {
			t.Errorf("said at once: %s", got)
		}
		time.Sleep(10 * time.Minute)
		if got := seen.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "can't be written") || !strings.Contains(got, "too many requests") {
			t.Errorf("log:\n%s", got)
		}
	})
}
