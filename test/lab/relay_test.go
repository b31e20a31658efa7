package lab_test

import (
	"io"
	"net"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/lab"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// What a client in a node's namespace says at a server's address is the server's to answer, to the end of
// both; Close ends what is left.
func TestAServerIsReachedFromANodesNamespace(t *testing.T) {
	nettest.Need(t)
	node := nettest.NewNetns(t, "relay")
	node.Run(t, "ip", "link", "set", "lo", "up")
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			client, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				_, _ = io.Copy(client, client)
			}()
		}
	}()
	address := server.Addr().String()
	way, err := lab.Reach(address, node.Do, nil)
	if err != nil {
		t.Fatal(err)
	}
	dial := func() (client net.Conn, err error) {
		err = node.Do(func() (err error) { client, err = net.Dial("tcp", address); return err })
		return client, err
	}
	client, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(client); err != nil || string(text) != "hello" {
		t.Errorf("the server says %q, %v", text, err)
	}
	left, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	way.Close()
	if _, err := dial(); err == nil {
		t.Error("the way is still open")
	}
}

// A browser here reads what a server in a node's namespace says on the loopback there; while none serves it gets no answer.
func TestAServerInANodesNamespaceIsBroughtOut(t *testing.T) {
	nettest.Need(t)
	node := nettest.NewNetns(t, "out")
	node.Run(t, "ip", "link", "set", "lo", "up")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const address = "127.0.0.1:9809"
	var way lab.Relay
	way.BringOut(l, node.Do, address)
	ask := func() string {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		text, _ := io.ReadAll(client) // a client that is not served may see its connection reset
		return string(text)
	}
	if text := ask(); text != "" {
		t.Errorf("nobody says %q", text)
	}
	var server net.Listener
	if err := node.Do(func() (err error) { server, err = net.Listen("tcp", address); return err }); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		if client, err := server.Accept(); err == nil {
			_, _ = io.WriteString(client, "hello")
			client.Close()
		}
	}()
	if text := ask(); text != "hello" {
		t.Errorf("the server says %q", text)
	}
	way.Close()
	if client, err := net.Dial("tcp", l.Addr().String()); err == nil {
		client.Close()
		t.Error("the way is still open")
	}
}
