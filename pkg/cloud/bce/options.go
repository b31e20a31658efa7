package bce

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/wire"
)

// wordFormat is the format of IDs and names, all of which can be a part of a URL's path as they are.
var wordFormat = regexp.MustCompile(`^[A-Za-z0-9_-]{0,40}$`)

// validID tells whether the API can be asked about an ID. Callers treat an object whose ID is
// not valid as one that does not exist.
func validID(id string) bool { return id != "" && wordFormat.MatchString(id) }

func (o Options) validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	// All mistakes are returned together, so that a person corrects the configuration once.
	if o.Endpoint != "" {
		errs = append(errs, wire.CheckURL(o.Endpoint, "endpoint", false))
	}
	if o.Metadata != "" {
		errs = append(errs, wire.CheckURL(o.Metadata, "metadata", true))
	}
	for _, is := range [][2]string{{"region", o.Region}, {"instance", o.Instance}, {"vpc", o.VPC}, {"zone", o.Zone}} {
		if !wordFormat.MatchString(is[1]) {
			bad("%s %q: must be letters, digits, dashes and underscores", is[0], is[1])
		}
	}
	if !slices.Contains([]Kind{"", BCC, BBC, EBC}, o.Kind) {
		bad("kind %q: must be bcc, bbc or ebc", o.Kind)
	}
	if o.Timeout < 0 {
		bad("the timeout must not be below 0")
	}
	return errors.Join(errs...)
}

// groups are security groups by their kind. An ENI has groups of one kind only.
type groups struct{ plain, enterprise []string }

// CheckGroups returns why an ENI can't have these security groups, or nil: an ENI has
// plain ones (g-...) or enterprise ones (esg-...).
func CheckGroups(ids []string) error {
	_, err := parseGroups(ids)
	return err
}

func parseGroups(ids []string) (kinds groups, err error) {
	for _, id := range ids {
		switch {
		case strings.HasPrefix(id, "esg-"):
			kinds.enterprise = append(kinds.enterprise, id)
		case strings.HasPrefix(id, "g-"):
			kinds.plain = append(kinds.plain, id)
		default:
			return groups{}, fmt.Errorf("security group %q: must begin with g- or esg-", id)
		}
	}
	if len(kinds.plain) > 0 && len(kinds.enterprise) > 0 {
		return groups{}, errors.New("security groups: an ENI has either g-... or esg-..., and these are of both kinds")
	}
	return kinds, nil
}
