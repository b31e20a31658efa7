package aws

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
)

// ValidEndpoint returns why a URL can't be where EC2 or the metadata is. Only on
// this machine or link it may be without TLS: elsewhere credentials and addresses
// would be anybody's to read and to change.
func ValidEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("endpoint must be https:// and a host, or http:// and a loopback or link-local address")
	}
	if u.Scheme == "https" || u.Scheme == "http" && near(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("endpoint %s: must be https, or http with a loopback or link-local address", u.Redacted())
}

// near tells whether a host is on this machine or link, as its metadata is.
func near(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a.IsLoopback() || a.IsLinkLocalUnicast() || a == netip.MustParseAddr("fd00:ec2::254"))
}

func validEndpoints(o Options) error {
	for _, text := range []string{o.Endpoint, o.Metadata} {
		if text == "" {
			continue
		}
		if err := ValidEndpoint(text); err != nil {
			return err
		}
	}
	return nil
}
