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

// newMetadata returns the service at the URL, "" for its usual one.
func newMetadata(url string) metadata {
	t := wire.Transport()
	t.Proxy = nil // it is on this machine's link
	return metadata{url: strings.TrimSuffix(cmp.Or(url, "http://169.254.169.254"), "/"), by: t}
}

// momentary is a failure of the metadata service that may be over a moment later.
type momentary struct{ error }

// get returns the text at the path. Failures that may pass are of type momentary.
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
	case text == "": // how the service answers what it does not know
		return "", fmt.Errorf("the metadata service does not know %s", path)
	}
	return text, nil
}

// Self implements driver.Driver: what the options say, and what the metadata service tells of
// the rest.
func (d *Driver) Self(ctx context.Context) (driver.Self, error) {
	d.mu.Lock()
	known := d.self
	d.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	self := driver.Self{Instance: d.o.Instance, Type: string(d.o.Kind), Region: d.o.Region, Zone: d.o.Zone, VPC: d.o.VPC}
	for _, ask := range []struct {
		into *string
		path string
	}{{&self.Region, "region"}, {&self.Instance, "instance-shortid"}, {&self.VPC, "vpc-id"}, {&self.Zone, "azone"}, {&self.Type, "instance-type-ex"}} {
		if *ask.into != "" || ask.into == &self.Region && d.o.Endpoint != "" {
			continue
		}
		text, err := d.meta.get(ctx, "/1.0/meta-data/"+ask.path)
		if err == nil && !wordFormat.MatchString(text) {
			err = fmt.Errorf("the metadata service's %s is no word", ask.path)
		}
		if err != nil {
			return driver.Self{}, d.ownError(ctx, cloud.ErrUnavailable, err.Error())
		}
		*ask.into = text
	}
	if kindOf(self.Type) == BBC && d.o.Kind == "" {
		// The service calls all bare metal "bbc"; the name of the type tells which it is, such as
		// "ebc.l5.c128m256". If the service does not know the name, it is BBC.
		spec, err := d.meta.get(ctx, "/1.0/meta-data/instance-type")
		if _, passes := errors.AsType[momentary](err); passes {
			return driver.Self{}, d.ownError(ctx, cloud.ErrUnavailable, err.Error())
		}
		if kind, _, named := strings.Cut(spec, "."); named && kindOf(kind) == EBC {
			self.Type = kind
		}
	}
	self.Type = string(kindOf(self.Type))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.self = &self
	return self, nil
}

// kindOf reads a kind as the metadata service or a Self has it. Bare metal of a cluster (EHC)
// behaves as EBC: Baidu's driver, cce-network-v2/pkg/bce/vpceni/node_super.go.
func kindOf(text string) Kind {
	switch k := Kind(strings.ToLower(text)); k {
	case BBC, EBC:
		return k
	case "ehc":
		return EBC
	}
	return BCC
}

// isBare tells whether an instance is one of the service for bare metal. EBC is not: it has the
// requests of virtual machines.
func isBare(s driver.Self) bool { return kindOf(s.Type) == BBC }

// selfOf returns what is known of an instance by its ID. An instance other than this process's
// own counts as a virtual machine or EBC: BBC has no ENIs that another instance would look after.
func (d *Driver) selfOf(ctx context.Context, instance string) (driver.Self, error) {
	s, err := d.Self(ctx)
	if s.Instance != instance {
		s = driver.Self{Instance: instance}
	}
	return s, err
}
