// Package clustertest has an API server in memory for tests of commands: it serves objects by their paths.
package clustertest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Server serves the objects that it has.
type Server struct {
	Kubeconfig string // path of a file that names it

	mu      sync.Mutex
	objects map[string]any          // by path, like /api/v1/nodes/n1
	pages   map[string]http.Handler // what pods serve, by path of the pod with its port
	deleted []string
	patched []string // path and patch
	onGone  func(path string)
}

// kinds are those of lists, by resource.
var kinds = map[string]string{"nodes": "NodeList", "pods": "PodList", "nodenetworks": "NodeNetworkList", "subnets": "SubnetList", "events": "EventList",
	"podsubnettopologies": "PodSubnetTopologyList", "addressclaims": "AddressClaimList"}

// Start starts a server that ends with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{objects: map[string]any{}, pages: map[string]http.Handler{}, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": %q}}],
		"users": [{"name": "u", "user": {}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, at.URL)
	if err := os.WriteFile(s.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Put makes an object, or replaces it. nil removes it.
func (s *Server) Put(at string, object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[at] = object; object == nil {
		delete(s.objects, at)
	}
}

// Serve lets a pod of kube-system serve pages at a port: pod is like "name:9810".
func (s *Server) Serve(pod string, pages http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages["/api/v1/namespaces/kube-system/pods/"+pod+"/proxy"] = pages
}

// OnDelete is told of paths whose object was deleted.
func (s *Server) OnDelete(do func(at string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onGone = do
}

// Deleted returns the paths that were deleted.
func (s *Server) Deleted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

// Patched returns the paths that were patched, each with its patch. The objects stay as they are.
func (s *Server) Patched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.patched)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	for at, pages := range s.pages {
		if strings.HasPrefix(r.URL.Path, at+"/") {
			s.mu.Unlock()
			http.StripPrefix(at, pages).ServeHTTP(w, r)
			return
		}
	}
	defer s.mu.Unlock()
	if r.Method == http.MethodDelete {
		s.deleted = append(s.deleted, r.URL.Path)
		delete(s.objects, r.URL.Path)
		if s.onGone != nil {
			go s.onGone(r.URL.Path)
		}
		answer(w, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
		return
	}
	o, is := s.objects[r.URL.Path]
	if r.Method == http.MethodPatch && is {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		s.patched = append(s.patched, r.URL.Path+" "+string(text))
	}
	if is {
		answer(w, http.StatusOK, o)
		return
	}
	if items, is := s.listAt(r.URL.Path); is {
		group := strings.TrimPrefix(strings.TrimPrefix(path.Dir(r.URL.Path), "/apis/"), "/api/")
		if strings.Contains(group, "/namespaces/") {
			group, _, _ = strings.Cut(group, "/namespaces/")
		}
		kind := kinds[path.Base(r.URL.Path)]
		answer(w, http.StatusOK, map[string]any{"kind": kind, "apiVersion": group, "items": items, "metadata": map[string]any{"resourceVersion": "1"}})
		return
	}
	answer(w, http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": r.URL.Path + " not found"})
}

// listAt returns the objects right below a path, by their names as an API server orders them, and whether it is a collection. The caller holds the lock.
func (s *Server) listAt(at string) (items []any, is bool) {
	_, is = kinds[path.Base(at)]
	items = []any{}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if path.Dir(name) == at {
			items = append(items, s.objects[name])
		}
	}
	return items, is
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
