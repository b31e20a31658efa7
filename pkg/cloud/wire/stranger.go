package wire

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Stranger is a refusal that is not the cloud's: a proxy, or something else between the machine and
// the cloud, has made it. It says nothing about credentials and permissions.
type Stranger struct {
	Status string // "HTTP 403 Forbidden"
	By     string // what the header says has answered, "" if it does not
	Proxy  string // the host of the proxy, if it has refused to connect; else ""
}

// StrangerOf returns the Stranger of an answer with this status and header.
func StrangerOf(status string, h http.Header) *Stranger {
	return &Stranger{Status: status, By: cmp.Or(h.Get("Server"), h.Get("Via"))}
}

// Error says who has answered, and with which status.
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

// HearProxy is for http.Transport.OnProxyConnectResponse. It makes a Stranger of a proxy's refusal,
// of which net/http itself only returns the text of the status.
func HearProxy(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	s := StrangerOf("HTTP "+answer.Status, answer.Header)
	s.Proxy = proxy.Host
	return s
}
