package bce

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// wordFormat is of IDs and of names: what can be a part of a path of the API.
var wordFormat = regexp.MustCompile(`^[A-Za-z0-9_-]{0,40}$`)

// validID tells whether the API can be asked about an ID. What it can't be asked about
// does not exist.
func validID(id string) bool { return id != "" && wordFormat.MatchString(id) }

func (o Options) validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if err := safeURL(o.Endpoint, "endpoint"); err != nil {
		errs = append(errs, err)
	}
	if err := safeURL(o.Metadata, "metadata"); err != nil {
		errs = append(errs, err)
	}
	for name, value := range map[string]string{"region": o.Region, "instance": o.Instance, "vpc": o.VPC, "zone": o.Zone} {
		if !wordFormat.MatchString(value) {
			bad("%s %q: must be letters, digits, dashes and underscores", name, value)
		}
	}
	if !slices.Contains([]Kind{"", BCC, BBC, EBC}, o.Kind) {
		bad("kind %q: must be bcc, bbc or ebc", o.Kind)
	}
	if o.Timeout < 0 {
		bad("the timeout must not be below 0")
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// safeURL returns why the credentials must not go to the URL, or nil. Plain HTTP is
// for this machine and, for metadata, its link.
func safeURL(text, what string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s: must be a URL of a scheme and a host", what)
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	near := u.Hostname() == "localhost" || addr.IsLoopback() || what == "metadata" && addr.IsLinkLocalUnicast()
	if u.Scheme != "https" && (u.Scheme != "http" || !near) {
		return fmt.Errorf("%s %s: must be https, but on loopback", what, text)
	}
	return nil
}

// groups are security groups of one of the two kinds.
type groups struct{ plain, enterprise []string }

// CheckGroups returns why an ENI can't have these security groups, or nil: an ENI has
// plain ones (g-...) or enterprise ones (esg-...).
func CheckGroups(ids []string) error {
	_, err := parseGroups(ids)
	return err
}

func parseGroups(ids []string) (g groups, err error) {
	for _, id := range ids {
		switch {
		case strings.HasPrefix(id, "esg-"):
			g.enterprise = append(g.enterprise, id)
		case strings.HasPrefix(id, "g-"):
			g.plain = append(g.plain, id)
		default:
			return groups{}, fmt.Errorf("security group %q: must begin with g- or esg-", id)
		}
	}
	if len(g.plain) > 0 && len(g.enterprise) > 0 {
		return groups{}, errors.New("security groups: an ENI has either g-... or esg-..., and these are of both kinds")
	}
	return g, nil
}
