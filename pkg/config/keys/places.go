package keys

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// Listen is where a program serves its pages, or "" for nowhere.
func Listen(name string, into *string) Key {
	return Single(name, `an IP address (or localhost) and a port like "127.0.0.1:9809", or "" for none`, func(text string) bool {
		*into = text
		return text == "" || isListen(text)
	}).At(TextAt(into)).Of(Rule{"type": []string{"string", "null"}, "pattern": "^(.+:[0-9]+)?$"})
}

// URL is where an API answers, or "" where that is the default.
func URL(name string, into *string) Key {
	return Single(name, WantURL, func(text string) bool {
		*into = text
		return text == "" || IsURL(text)
	}).At(TextAt(into)).Of(Rule{"type": []string{"string", "null"}, "pattern": "^(https?://.+)?$"})
}

// WantEndpoint and WantURL say what IsEndpoint and IsURL take.
const (
	WantEndpoint = "unix:// and an absolute path, or http:// with a loopback address and a port, like http://127.0.0.1:9810"
	WantURL      = "https:// and a host, or http:// and a loopback or link-local address"
)

// IsEndpoint takes only endpoints on this machine, because the simulated VPC checks no rights.
func IsEndpoint(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	switch u.Scheme {
	case "unix":
		return u.Host == "" && path.IsAbs(u.Path) && path.Clean(u.Path) != "/"
	case "http":
		at, err := netip.ParseAddrPort(strings.Replace(u.Host, "localhost:", "127.0.0.1:", 1))
		return err == nil && at.Addr().IsLoopback() && at.Port() > 0 && (u.Path == "" || u.Path == "/")
	}
	return false
}

// IsURL takes only TLS where others could listen: requests to a real cloud carry credentials.
func IsURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return false
	}
	at, err := netip.ParseAddr(strings.Replace(u.Hostname(), "localhost", "127.0.0.1", 1))
	near := err == nil && (at.IsLoopback() || at.IsLinkLocalUnicast() || at == netip.MustParseAddr("fd00:ec2::254"))
	return u.Scheme == "https" || u.Scheme == "http" && near
}

// isListen takes only an explicit address: ":9809" would open the port on all addresses of the
// node without saying so.
func isListen(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, errHost := netip.ParseAddr(host)
	_, errPort := strconv.ParseUint(port, 10, 16)
	return errPort == nil && (errHost == nil || host == "localhost")
}

// Families is what addresses pods get, in the order of their versions.
func Families(name string, into *[]eni.Family) Key {
	var list []eni.Family // apart from into, which has the default until the file names one
	at := ListAt(into)
	at.Shown = func() any {
		var names []string
		for _, f := range *into {
			names = append(names, f.String())
		}
		return names
	}
	return List(name, "ipv4 or ipv6", func(text string) bool {
		for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
			if text == f.String() && !slices.Contains(list, f) {
				list = append(list, f)
				slices.Sort(list)
				*into = list
				return true
			}
		}
		return false
	}).At(at).Of(Rule{"type": []string{"array", "null"}, "uniqueItems": true, "items": Rule{"enum": []any{eni.IPv4.String(), eni.IPv6.String()}}})
}
