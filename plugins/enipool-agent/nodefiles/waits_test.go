package nodefiles

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status/web"
)

// What ADDs leave behind shows in the metrics after the tick that their end wakes.
func TestWaitsOfAddsAreCountedByOutcome(t *testing.T) {
	cache := nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
	for _, w := range []nodecache.Wait{{Took: 2 * time.Second, Outcome: nodecache.Served}, {Took: 300 * time.Millisecond, Outcome: nodecache.Served},
		{Outcome: nodecache.Exhausted}} {
		if err := cache.RecordWait(w); err != nil {
			t.Fatal(err)
		}
	}
	metrics := web.New("v1")
	var log strings.Builder
	wants := CountWaits(cache, metrics, slog.New(slog.NewTextHandler(&log, nil)), cache.PendingADDs)
	for range 2 {
		if list, err := wants(0); len(list) > 0 || err != nil {
			t.Errorf("%v, %v", list, err)
		}
	}
	server := httptest.NewServer(metrics.Handler(nil, false))
	defer server.Close()
	answer, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`enipool_add_wait_seconds_count{outcome="served"} 2`, `enipool_add_wait_seconds_sum{outcome="served"} 2.3`,
		`enipool_add_wait_seconds_count{outcome="exhausted"} 1`, `enipool_add_wait_seconds_count{outcome="failed"} 0`} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}
	if err := os.Remove(cache.Path + ".waits"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(cache.Path+".waits", 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := wants(0); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "waits of ADDs are not counted"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}
