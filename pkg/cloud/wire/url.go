package wire

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// metadata6 is the IPv6 address of EC2's instance metadata, which is not a link-local one.
var metadata6 = netip.MustParseAddr("fd00:ec2::254")

// CheckURL returns why a URL must not be used for requests with credentials, or nil. what is the
// URL's name in the error. Without TLS it must be on this machine or, with onLink, on its link, where
// instance metadata is: elsewhere others could read the credentials.
func CheckURL(text, what string, onLink bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s: must be a URL of a scheme and a host", what)
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	near := u.Hostname() == "localhost" || addr.IsLoopback() || onLink && (addr.IsLinkLocalUnicast() || addr == metadata6)
	if u.Scheme != "https" && (u.Scheme != "http" || !near) {
		return fmt.Errorf("%s %s: must be https, but on this machine or its link", what, text)
	}
	return nil
}
