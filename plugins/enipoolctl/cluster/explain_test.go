package cluster

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answering returns the API client of a server that answers all with that.
func answering(t *testing.T, server string) *API {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: "` + server + `"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := Open(file, "", "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func TestWhoCanNotReadTheClusterIsToldWhatToDo(t *testing.T) {
	status := func(code int, reason, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			answer(w, code, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"`+message+`","reason":"`+reason+`"}`)
		}
	}
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc // nil: nobody is there
		want   []string         // of a list, and of what is read raw too
	}{
		{"nobody is there", nil, []string{"the API server can't be reached: ", "connection refused", "--kubeconfig and --context name another"}},
		{"it may not", status(403, "Forbidden", "bob may not list that"), []string{"bob may not list that", "use a kubeconfig that may"}},
		{"it is not known", status(401, "Unauthorized", "Unauthorized"), []string{"does not know these credentials", "--kubeconfig and --context name others"}},
	} {
		server := httptest.NewServer(tt.answer)
		if tt.answer == nil {
			server.Close()
		}
		api := answering(t, server.URL)
		_, list := api.ListNetworks(t.Context())
		_, raw := api.Raw(t.Context(), "/version")
		for _, err := range []error{list, raw} {
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", tt.name, err, want)
				}
			}
		}
		server.Close()
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "text/html", "<html>log in</html>") }))
	defer page.Close()
	if _, err := answering(t, page.URL).ListNetworks(t.Context()); err == nil || !strings.Contains(err.Error(), "what answered is no API server") {
		t.Errorf("a page: %v", err)
	}
}

func answer(w http.ResponseWriter, code int, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}
