package demo

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// A page that an agent serves in its node's network is read through a socket of another one.
func TestAPageIsBroughtOutOfTheSandbox(t *testing.T) {
	node := &labNode{name: "n1", ns: nettest.NewNetns(t, "demo-page").Namespace}
	var inside net.Listener
	if err := node.ns.Do(func() (err error) {
		if err = isolate.LoopbackUp(); err == nil {
			inside, err = net.Listen("tcp", agentPages)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		_, _ = io.WriteString(w, "for "+host)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(inside) }()
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := (&demo{nodes: []*labNode{node}, pages: []net.Listener{outside}}).showPages(t.Context())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + outside.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if string(text) != "for 127.0.0.1" {
		t.Errorf("%q", text)
	}
	// With no agent a browser gets no answer, and is not kept waiting.
	server.Close()
	<-served
	if _, err := client.Get("http://" + outside.Addr().String() + "/"); err == nil {
		t.Error("an agent that is gone answers")
	}
	stop()
	if _, err := net.Dial("tcp", outside.Addr().String()); err == nil {
		t.Error("nobody serves, and it listens")
	}
}
