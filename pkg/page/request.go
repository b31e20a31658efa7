package page

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// IsWanted tells whether a browser asks: programs that ask for whatever there is get text.
func IsWanted(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// IsLocal tells whether the request comes from the machine itself, as one by kubectl port-forward does, and names
// the machine by an address or as localhost. With another name it may be a web site's script: who owns a name can
// have it lead to the reader's own machine.
func IsLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && isPlainHost(r.Host)
}

func isPlainHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}
