package cni

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

const patient = `{"cniVersion":"1.0.0","name":"pods","type":"enipool","waitForAddress":"1m"}`

// exhaust makes pods that use up the pool; they go with the test.
func (l *lab) exhaust() {
	l.t.Helper()
	for _, id := range []string{"a", "b", "c", "d"} {
		l.mustAdd(id, nettest.NewNetns(l.t, id).Path, plain)
	}
	l.t.Cleanup(func() {
		for _, id := range []string{"a", "b", "c", "d"} {
			l.mustDel(id, "", plain)
		}
	})
}

// pendingADDs returns the pending ADDs as "container pod until".
func (l *lab) pendingADDs() string {
	l.t.Helper()
	list, err := l.Cache.PendingADDs(l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	var lines []string
	for _, w := range list {
		lines = append(lines, w.Owner.Container+" "+w.Owner.PodName()+" "+w.Until.String())
	}
	return strings.Join(lines, "\n")
}

// addAddress gives the second ENI an address more.
func (l *lab) addAddress() { l.addAddresses(1, 1) }

// addAddresses gives the ENI more addresses in one change, as the agent does.
func (l *lab) addAddresses(index, count int) {
	l.t.Helper()
	err := l.Cache.Replace(l.t.Context(), func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		next := s.ENIs[index].V4.Primary.Addr()
		for _, a := range s.Addresses {
			if a.ENI == index {
				next = a.Addr
			}
		}
		var more []netip.Addr
		for range count {
			next = next.Next()
			more = append(more, next)
		}
		s.AddAddresses(index, more, nil, l.now)
		l.setTable(s)
		return s, nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// files lists what lies in the folder of pending ADDs.
func (l *lab) files() []os.DirEntry {
	entries, _ := os.ReadDir(l.Cache.Path + ".waiters")
	return entries
}

// addInBackground begins an ADD that waits, and returns when it has said so.
func (l *lab) addInBackground(ctx context.Context, id, netns string) <-chan error {
	l.t.Helper()
	watch, err := l.Cache.WatchAll()
	if err != nil {
		l.t.Fatal(err)
	}
	defer watch.Close()
	r, err := l.request(id, netns, patient, false)
	if err != nil {
		l.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Add(ctx, r, func(*current.Result) error { return nil }) }()
	for l.pendingADDs() == "" {
		select {
		case <-watch.C:
		case err := <-done:
			l.t.Fatalf("it did not wait: %v", err)
		}
	}
	return done
}

func TestAnAddTellsThatItWaitsUntilItHasAnAddress(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	done := l.addInBackground(t.Context(), "late", nettest.NewNetns(t, "late").Path)
	if got, want := l.pendingADDs(), "late default/late 2m40s"; got != want {
		t.Errorf("pending ADDs %q, want %q", got, want)
	}
	l.addAddress()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if left := l.files(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	l.mustDel("late", "", plain)
}

// Whether it is called off or past its time: its runtime will try again.
func TestAnAddThatGivesUpIsSeenUntilItsNextTry(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	ns := nettest.NewNetns(t, "late")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := l.addInBackground(ctx, "late", ns.Path)
	boom := errors.New("the runtime gave up")
	cancel(boom)
	if err := <-done; !errors.Is(err, boom) || Error(err).Code != 11 {
		t.Errorf("called off: %v", err)
	}
	if _, err := l.add("late", ns.Path, strings.Replace(patient, "1m", "1ms", 1)); err == nil || Error(err).Code != 11 {
		t.Errorf("past its time: %v", err)
	}
	if left := l.files(); len(left) != 1 {
		t.Errorf("announcements %v, want one", left)
	}
	if got, want := l.pendingADDs(), "late default/late 1m55s"; got != want {
		t.Errorf("pending ADDs %q, want %q", got, want)
	}
}

// Nobody tells when the kubelet's next try is over: it counts for a while.
func TestAnAddThatMayNotWaitIsSeenUntilItsNextTry(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	for _, id := range []string{"late", "again"} {
		r, err := l.request(id, nettest.NewNetns(t, id).Path, plain, false)
		if err != nil {
			t.Fatal(err)
		}
		r.Owner.Pod, r.Owner.UID = "web", "u-web" // a new sandbox of the same pod
		if err := l.Add(t.Context(), r, discard); err == nil || Error(err).Code != 11 {
			t.Errorf("%s: %v", id, err)
		}
		if got, want := l.pendingADDs(), " default/web 1m55s"; !strings.HasSuffix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("pending ADDs %q, want one%s", got, want)
		}
	}
	l.now += 17 * time.Second
	if got := l.pendingADDs(); got != "" || len(l.files()) != 0 {
		t.Errorf("pending ADDs %q, files %v", got, l.files())
	}
}

func TestAnAddThatNeedNotWaitTellsNothing(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.mustAdd("a", nettest.NewNetns(t, "a").Path, patient)
	if _, err := os.Stat(l.Cache.Path + ".waiters"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has a folder of pending ADDs: %v", err)
	}
	l.mustDel("a", "", plain)
}

func TestAnAddThatCanNotTellWaitsAllTheSame(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	if err := os.WriteFile(l.Cache.Path+".waiters", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	ns := nettest.NewNetns(t, "late")
	for _, conf := range []string{plain, strings.Replace(patient, "1m", "1ms", 1)} {
		log.Reset()
		if _, err := l.add("late", ns.Path, conf); err == nil || Error(err).Code != 11 || strings.Contains(err.Error(), "announce") {
			t.Errorf("%v", err)
		}
		if n := strings.Count(log.String(), "can't tell the agent that an address is wanted"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, &log)
		}
	}
}

// One that is woken, and finds nothing again and again, says so once.
func TestAnAddTellsOnceThatItWaits(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	for _, folder := range []string{".waiters", ".queue"} {
		if err := os.WriteFile(l.Cache.Path+folder, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := make(logLines, 100)
	l.Log = slog.New(slog.NewTextHandler(lines, nil))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := l.request("late", nettest.NewNetns(t, "late").Path, patient, false)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Add(ctx, r, discard) }()
	lines.waitFor(t, "can't tell the agent")
	for range 5 {
		l.touch()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for len(lines) > 0 {
		if line := <-lines; strings.Contains(line, "can't tell the agent") {
			t.Errorf("it says so again: %s", line)
		}
	}
}

// logLines is a log that a test can wait for.
type logLines chan string

func (l logLines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

func (l logLines) waitFor(t testing.TB, part string) {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, part) {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("the log does not say %q", part)
		}
	}
}

// touch writes the cache as it is.
func (l *lab) touch() {
	l.t.Helper()
	if err := l.Cache.Replace(l.t.Context(), func(s *ipam.State, err error) (*ipam.State, error) { return s, err }); err != nil {
		l.t.Fatal(err)
	}
}

func TestAnExhaustedPoolGivesTheAgentsReason(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	l.keepNode()
	if err := l.Cache.SetWhy("target 48, at most 110, last error: subnet-1 is full"); err != nil {
		t.Fatal(err)
	}
	ns := nettest.NewNetns(t, "late")
	const numbers, why = "no free ipv4 address: 4 addresses on 2 ENIs, 4 used, 0 cooling", "; the agent: target 48, at most 110, last error: subnet-1 is full"
	for conf, want := range map[string]string{plain: numbers + why, strings.Replace(patient, "1m", "1ms", 1): "waited 1ms: " + numbers + why} {
		if _, err := l.add("late", ns.Path, conf); err == nil || err.Error() != want || Error(err).Code != 11 {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
