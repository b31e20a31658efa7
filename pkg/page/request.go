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

// IsRebound tells whether the request comes from the machine itself and names it by a name of others, as a web site's script does that
// the reader of a forwarded port has open: it is of the site's own origin to the browser, which would hand it the answer.
func IsRebound(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && !isPlainHost(r.Host)
}

// RefuseRebound answers such requests with how to ask, and has all others served.
func RefuseRebound(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if IsRebound(r) {
			http.Error(w, "from the machine itself ask by its address or as localhost", http.StatusMisdirectedRequest)
			return
		}
		h(w, r)
	}
}

func isPlainHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}
