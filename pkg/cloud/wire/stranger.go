package wire

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Stranger is an answer that is not the cloud's: a proxy, or what else there is between the
// machine and the cloud, has refused. It says nothing of credentials and permissions.
type Stranger struct {
	Status string // "HTTP 403 Forbidden"
	By     string // who says that it has answered, "" if nobody does
	Proxy  string // the host of the proxy that refused the connection, "" if there was one
}

// StrangerOf is the answer with the status and the header.
func StrangerOf(status string, h http.Header) *Stranger {
	return &Stranger{Status: status, By: cmp.Or(h.Get("Server"), h.Get("Via"))}
}

// Error says who answered what.
func (s *Stranger) Error() string {
	answer := s.Status
	if s.By != "" {
		answer += fmt.Sprintf(" from %.60q", s.By)
	}
	if s.Proxy != "" {
		return "the proxy " + s.Proxy + " answers " + answer
	}
	return answer + ", and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"
}

// HearProxy is for http.Transport.OnProxyConnectResponse: net/http itself tells the words of
// the status alone.
func HearProxy(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	s := StrangerOf("HTTP "+answer.Status, answer.Header)
	s.Proxy = proxy.Host
	return s
}
