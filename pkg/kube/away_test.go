package kube

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func refusedError() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func TestItBeginsAndWorksOnWithoutTheAPIServer(t *testing.T) {
	for _, down := range []struct {
		name string
		err  error
		code int
	}{{"no connection", refusedError(), 0}, {"no route", errors.New("no route to host"), 0}, {"overloaded", nil, http.StatusTooManyRequests}, {"broken", nil, http.StatusInternalServerError}, {"starting", nil, http.StatusServiceUnavailable}} {
		t.Run(down.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				c.put(pod("a", here))
				c.down, c.status = down.err, down.code
				n, _ := start(t, c, Options{})
				time.Sleep(10 * time.Minute)
				if _, known := n.Pods(); known || woken(n) {
					t.Error("known without an API server")
				}
				c.do(func() { c.down, c.status = nil, 0 })
				time.Sleep(time.Minute)
				expect(t, n, "a")
				c.do(func() { c.down, c.status = down.err, down.code; c.cut() })
				c.put(pod("b", here))
				c.remove("pods/default/a")
				time.Sleep(10 * time.Minute)
				expect(t, n, "a")
				// A server that has just started knows no state from before: who asks for one
				// must not wait once more.
				c.do(func() { c.down, c.status, c.floor = nil, 0, len(c.history)+1 })
				time.Sleep(time.Minute)
				expect(t, n, "b")
			})
		})
	}
}

func TestRunEndsAtOnceWhenToldTo(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, time.Minute, 10 * time.Minute} {
		for _, errs := range [][]error{{nil}, {refusedError()}, {errors.New("no route to host")}, {errors.New("EOF"), refusedError()}} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				c.put(newNode())
				n, stop := start(t, c, Options{})
				n.Report(faulty(0))
				synctest.Wait()
				for _, err := range errs {
					time.Sleep(after)
					c.do(func() { c.down = err; c.cut() })
				}
				n.Report(faulty(1))
				time.Sleep(after)
				began := time.Now()
				stop()
				if lasted := time.Since(began); lasted != 0 {
					t.Errorf("after %s, %v: it took %s to stop", after, errs, lasted)
				}
			})
		}
	}
}

func TestAServerThatHangsHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		var seen journal
		n, stop := start(t, c, Options{Taint: true, Log: logger(&seen, slog.LevelInfo)})
		synctest.Wait()
		c.do(func() { c.hang = true })
		n.Report(fit(50))
		time.Sleep(time.Second)
		if seen.String() != "" {
			t.Errorf("said after a second:\n%s", &seen)
		}
		time.Sleep(time.Minute)
		if got := seen.String(); !strings.Contains(got, "does not answer") || strings.Count(got, "\n") != 1 {
			t.Errorf("said after a minute:\n%s", got)
		}
		c.do(func() { c.hang = false })
		time.Sleep(2 * time.Minute)
		expectNode(t, c, fitNode)
		said := seen.String()
		c.do(func() { c.hang = true; c.cut() })
		time.Sleep(time.Second)
		stop()
		if got := seen.String(); got != said {
			t.Errorf("said when it ended: %s", strings.TrimPrefix(got, said))
		}
	})
}

func TestOneLineWhenTheAPIServerGoesAndOneWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		var seen journal
		n, _ := start(t, c, Options{Log: logger(&seen, slog.LevelInfo)})
		n.Report(fit(50))
		synctest.Wait()
		c.do(func() { c.down = refusedError(); c.cut() })
		n.Report(faulty(50))
		time.Sleep(10 * time.Minute)
		c.do(func() { c.down = nil })
		time.Sleep(10 * time.Minute)
		want := "level=WARN msg=\"the API server does not answer; the node goes on with what it knows\" error=\"dial tcp: connect: connection refused\"\n" +
			"level=INFO msg=\"the API server answers again\" away=10m"
		if got := seen.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 2 {
			t.Errorf("log:\n%swant:\n%s", got, want)
		}
	})
}

func TestARefusalIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		c.forbid = "PATCH nodes/status"
		var seen journal
		n, _ := start(t, c, Options{Log: logger(&seen, slog.LevelInfo)})
		n.Report(fit(50))
		for range 600 { // the node changes all the time
			node := c.theNode()
			node.Status.Phase = corev1.NodeRunning
			c.put(node)
			time.Sleep(time.Second)
		}
		if tries := c.calls("PATCH"); tries < 15 || tries > 40 {
			t.Errorf("%d tries in 10 minutes", tries)
		}
		c.do(func() { c.forbid = "" })
		time.Sleep(10 * time.Minute)
		want := "level=WARN msg=\"the API server refuses a request; look at the agent's service account and its roles\" request=\"PATCH nodes/status\" answer=\"403 Forbidden\"\n" +
			"level=WARN msg=\"the node's condition, taint or capacity can't be written\" error=\"patch the status of the node: nodes/status \\\"x\\\" is forbidden: no role allows it\"\n" +
			"level=INFO msg=\"the API server allows a request that it refused before\" request=\"PATCH nodes/status\"\n"
		if got := seen.String(); got != want {
			t.Errorf("log:\n%swant:\n%s", got, want)
		}
		if conditionOf(c.theNode()).Status != corev1.ConditionFalse {
			t.Error("the condition did not come in the end")
		}
	})
}

func TestTheLibrariesLogAStepLower(t *testing.T) {
	var seen journal
	log := slog.New(lower{logger(&seen, slog.LevelInfo).Handler()}).With("a", 1).WithGroup("g")
	log.Info("retrying")
	log.Error("no connection", "b", 2)
	if want := "level=WARN msg=\"no connection\" a=1 g.b=2\n"; seen.String() != want {
		t.Errorf("log %q, want %q", seen.String(), want)
	}
}

func TestNoTokenInLogsOrErrors(t *testing.T) {
	const token = "eyJhbGciOi.secret"
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		var seen journal
		config := c.config()
		config.BearerToken = token
		n, err := New(Options{Node: here, Config: config, Log: logger(&seen, slog.Level(-20))})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- n.Run(ctx) }()
		n.Report(faulty(1))
		time.Sleep(time.Minute)
		c.do(func() {
			if c.lastAuth != "Bearer "+token {
				t.Errorf("the token was not used: %q", c.lastAuth)
			}
		})
		for _, code := range []int{401, 403, 404, 409, 410, 422, 429, 500, 503} {
			c.do(func() { c.status = code; c.cut() })
			n.Report(fit(code))
			time.Sleep(time.Minute)
		}
		for _, err := range []error{refusedError(), errors.New("EOF")} {
			c.do(func() { c.down = err; c.cut() })
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if seen.String() == "" || libraries.String() == "" {
			t.Error("nothing was logged")
		}
		if strings.Contains(seen.String()+libraries.String(), "secret") {
			t.Error("a token is in the log")
		}
	})
}
