package bce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// metadata is the service that tells an instance about itself.
type metadata struct {
	url string
	by  http.RoundTripper
}

// newMetadata returns the service at the URL, "" is its usual one.
func newMetadata(url string) metadata {
	t := wire.Transport()
	t.Proxy = nil // it is on this machine's link
	return metadata{url: strings.TrimSuffix(cmp.Or(url, "http://169.254.169.254"), "/"), by: t}
}

// momentary is a failure of the metadata service that may be over a moment later.
type momentary struct{ error }

// get returns the text at the path. An empty answer is what the service says where
// it does not know.
func (m metadata) get(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+path, nil)
	if err != nil {
		return "", err
	}
	a := wire.Exchange(m.by, r, 64<<10, nil)
	text := strings.TrimSpace(string(a.Body))
	switch {
	case a.Status == http.StatusTooManyRequests, a.Status >= 500:
		return "", momentary{fmt.Errorf("the metadata service answers %s", a.Line)}
	case a.Status > 0 && a.Status != http.StatusOK:
		return "", fmt.Errorf("the metadata service answers %s for %s", a.Line, path)
	case a.Err != nil:
		return "", momentary{fmt.Errorf("ask the metadata service for %s%s: %w", m.url, path, a.Err)}
	case text == "":
		return "", fmt.Errorf("the metadata service does not know %s", path)
	}
	return text, nil
}

// Self implements driver.Driver: what the options say, and of the rest what the metadata
// service does.
func (d *Driver) Self(ctx context.Context) (driver.Self, error) {
	d.mu.Lock()
	known := d.self
	d.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	s := driver.Self{Instance: d.o.Instance, Type: string(d.o.Kind), Region: d.o.Region, Zone: d.o.Zone, VPC: d.o.VPC}
	for _, ask := range []struct {
		into *string
		path string
	}{{&s.Region, "region"}, {&s.Instance, "instance-shortid"}, {&s.VPC, "vpc-id"}, {&s.Zone, "azone"}, {&s.Type, "instance-type-ex"}} {
		if *ask.into != "" || ask.into == &s.Region && d.o.Endpoint != "" {
			continue
		}
		text, err := d.meta.get(ctx, "/1.0/meta-data/"+ask.path)
		if err == nil && !wordFormat.MatchString(text) {
			err = fmt.Errorf("the metadata service's %s is no word", ask.path)
		}
		if err != nil {
			return driver.Self{}, d.fail(ctx, cloud.ErrUnavailable, err.Error())
		}
		*ask.into = text
	}
	if kindOf(s.Type) == BBC && d.o.Kind == "" {
		// All bare metal is "bbc" there; the type's name tells which, as "ebc.l5.c128m256".
		// Where it is not known it stays what it was before there was any other.
		spec, err := d.meta.get(ctx, "/1.0/meta-data/instance-type")
		if _, passes := errors.AsType[momentary](err); passes {
			return driver.Self{}, d.fail(ctx, cloud.ErrUnavailable, err.Error())
		}
		if kind, _, named := strings.Cut(spec, "."); named && kindOf(kind) == EBC {
			s.Type = kind
		}
	}
	s.Type = string(kindOf(s.Type))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.self = &s
	return s, nil
}

// kindOf reads what the metadata service or a Self tells of an instance. Bare metal of a
// cluster (EHC) is as EBC: Baidu's driver, cce-network-v2/pkg/bce/vpceni/node_super.go.
func kindOf(text string) Kind {
	switch k := Kind(strings.ToLower(text)); k {
	case BBC, EBC:
		return k
	case "ehc":
		return EBC
	}
	return BCC
}

// isBare tells whether the service for bare metal has an instance.
func isBare(s driver.Self) bool { return kindOf(s.Type) == BBC }

// known is an instance of which only the ID is at hand. Others than this process's own
// are not of the old kind of bare metal, which has no ENIs to look after.
func (d *Driver) known(ctx context.Context, instance string) (driver.Self, error) {
	s, err := d.Self(ctx)
	if s.Instance != instance {
		s = driver.Self{Instance: instance}
	}
	return s, err
}
