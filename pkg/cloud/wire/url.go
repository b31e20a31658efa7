package wire

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// metadata6 is where EC2's instance metadata is for IPv6, on no link by its address.
var metadata6 = netip.MustParseAddr("fd00:ec2::254")

// CheckURL returns why nothing may be asked at a URL, such as an API with credentials, or
// nil. Only on this machine, and with onLink on its link, where instance metadata is, it may
// be without TLS: elsewhere the credentials would be anybody's to read.
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
