package pool

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nodecache"
)

// lines is where the watch says what it waits for.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// It stays, says once what it waits for, and shows the cache when there is one: in a folder that
// exists, and in one that does not exist yet either.
func TestAWatchWaitsForANodeCacheThatIsMissing(t *testing.T) {
	for name, folder := range map[string]string{"no cache": ".", "no folder": "enipool"} {
		t.Run(name, func(t *testing.T) {
			cache := nodecache.Cache{Path: filepath.Join(t.TempDir(), folder, "node.cache")}
			ctx, stop := context.WithCancel(t.Context())
			said, shown := make(lines, 8), make(chan struct{}, 8)
			w := cacheWatch{cache: cache, errOut: said, show: func(io.Writer) error {
				if _, err := os.Stat(cache.Path); err != nil {
					return errors.Join(nodecache.ErrMissing, err)
				}
				shown <- struct{}{}
				return nil
			}}
			ended := make(chan error, 1)
			go func() { ended <- w.run(ctx) }()
			if text := <-said; !strings.HasPrefix(text, "enipoolctl: waiting for the node cache: node cache is missing") {
				t.Errorf("it says %q", text)
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(cache.Path), 0o700), os.WriteFile(cache.Path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-shown:
			case err := <-ended:
				t.Fatalf("it ended: %v", err)
			}
			stop()
			if err := <-ended; err != nil || len(said) > 0 {
				t.Errorf("it ended with %v, and said %d more lines", err, len(said))
			}
		})
	}
}

func TestAWatchEndsWithAnErrorThatDoesNotPass(t *testing.T) {
	refused := errors.New("permission denied")
	w := cacheWatch{cache: nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}, show: func(io.Writer) error { return refused }}
	if err := w.run(t.Context()); !errors.Is(err, refused) {
		t.Error(err)
	}
}
