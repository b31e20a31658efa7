package bce

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// metadata is the service that tells an instance about itself.
type metadata struct {
	url    string
	client *http.Client
}

// newMetadata returns the service at the URL, "" is its usual one.
func newMetadata(url string) metadata {
	t := transport()
	t.Proxy = nil // it is on this machine's link
	return metadata{url: strings.TrimSuffix(cmp.Or(url, "http://169.254.169.254"), "/"),
		client: &http.Client{Transport: t, Timeout: 5 * time.Second, CheckRedirect: stay}}
}

// get returns the text at the path. An empty answer is what the service says where
// it does not know.
func (m metadata) get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := m.client.Do(r)
	if err != nil {
		return "", fmt.Errorf("ask the metadata service: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the metadata service answers %s for %s", resp.Status, path)
	case err != nil:
		return "", fmt.Errorf("read %s of the metadata service: %w", path, err)
	case strings.TrimSpace(string(text)) == "":
		return "", fmt.Errorf("the metadata service does not know %s", path)
	}
	return strings.TrimSpace(string(text)), nil
}

// self is what an instance is for good.
type self struct {
	region, instance, vpc, zone string
	kind                        Kind
}

// whoami returns what the options say, and of the rest what the metadata service
// does.
func (c *Client) whoami(ctx context.Context, op string) (self, error) {
	c.mu.Lock()
	me := c.self
	c.mu.Unlock()
	if me != nil {
		return *me, nil
	}
	o := self{region: c.o.Region, instance: c.o.Instance, vpc: c.o.VPC, zone: c.o.Zone, kind: c.o.Kind}
	kind := string(o.kind)
	for _, ask := range []struct {
		into *string
		path string
	}{{&o.region, "region"}, {&o.instance, "instance-shortid"}, {&o.vpc, "vpc-id"}, {&o.zone, "azone"}, {&kind, "instance-type-ex"}} {
		if *ask.into != "" || ask.into == &o.region && c.o.Endpoint != "" {
			continue
		}
		text, err := c.meta.get(ctx, "/1.0/meta-data/"+ask.path)
		if err == nil && !wordFormat.MatchString(text) {
			err = fmt.Errorf("the metadata service's %s is no word", ask.path)
		}
		if err != nil {
			return self{}, c.problem(call{op: op}, cloud.ErrUnavailable, ctx.Err(), err.Error())
		}
		*ask.into = text
	}
	o.kind = kindOfInstance(kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self = &o
	return o, nil
}

func kindOfInstance(text string) Kind {
	switch k := Kind(strings.ToLower(text)); k {
	case BBC, EBC:
		return k
	}
	return BCC
}

// sameZone compares the two ways in which zones are written: "zoneA" and "cn-bj-a".
func sameZone(a, b string) bool {
	short := func(zone string) string {
		zone = strings.ToLower(zone)
		if rest, ok := strings.CutPrefix(zone, "zone"); ok {
			return rest
		}
		return zone[strings.LastIndexByte(zone, '-')+1:]
	}
	return short(a) == short(b)
}
