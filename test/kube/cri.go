package kube

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// criServes returns nil once containerd answers what a kubelet asks. Right after its
// start it has a socket, but says that it is not initialized. The question, which
// pods there are, is an empty message; a gRPC library is not needed for that.
func (n *Node) criServes() error {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", n.Path("/run/containerd/containerd.sock"))
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodPost, "http://containerd/runtime.v1.RuntimeService/ListPodSandbox", bytes.NewReader(make([]byte, 5)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	status := cmp.Or(answer.Trailer.Get("Grpc-Status"), answer.Header.Get("Grpc-Status"))
	if status != "0" {
		return fmt.Errorf("containerd: gRPC status %s: %s", status, cmp.Or(answer.Trailer.Get("Grpc-Message"), answer.Header.Get("Grpc-Message")))
	}
	return nil
}
