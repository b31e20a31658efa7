package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// nimbus is the driver of a made-up cloud that shows what a next one costs. It is like GCP
// and Azure: an instance has one NIC for its life, whose further addresses come from a range
// of their own; a change sends the whole list with a fingerprint of the one that it replaces.
type nimbus struct{ http http.Client }

var _ driver.Driver = (*nimbus)(nil)

// Traits implements driver.Driver.
func (d *nimbus) Traits() driver.Traits {
	return driver.Traits{Name: "Nimbus", Keys: driver.Keys{Subnet: "podsFree", Policy: "conf/nimbus/role.yaml"},
		Requests: map[string][]string{"Shape": {"types"}, "Alive": {"instances"}, "Subnets": {"subnets"}, "Interfaces": {"nics"}, "Page": {"nics"},
			"Assign": {"nics", "patch"}, "Unassign": {"nics", "patch"}, "SetGroups": {"nics", "patch"}},
		OneNIC: true, AllOrNothing: true, PerScan: 50, PageSize: 100, Times: driver.Times{Poll: 500 * time.Millisecond, Slow: 2 * time.Second, Settle: 5 * time.Second, Wait: time.Minute}}
}

// The objects of the API, by the names that they have there.
type (
	nimbusInstance struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Region  string `json:"region"`
		Zone    string `json:"zone"`
		Network string `json:"network"`
		State   string `json:"state"` // RUNNING, TERMINATED
	}
	nimbusNIC struct {
		ID          string       `json:"id"`
		MAC         string       `json:"mac"`
		Instance    string       `json:"instance"`
		Network     string       `json:"network"`
		Subnet      string       `json:"subnet"`
		Zone        string       `json:"zone"`
		Created     time.Time    `json:"created"`
		Address     netip.Addr   `json:"address"`
		Secondary   []netip.Addr `json:"secondary"`
		Groups      []string     `json:"groups"`
		Fingerprint string       `json:"fingerprint"`
	}
	nimbusSubnet struct {
		ID       string            `json:"id"`
		Network  string            `json:"network"`
		Zone     string            `json:"zone"`
		Range    netip.Prefix      `json:"range"`
		Gateway  netip.Addr        `json:"gateway"`
		Pods     netip.Prefix      `json:"pods"`
		PodsFree int               `json:"podsFree"`
		Labels   map[string]string `json:"labels"`
	}
	nimbusType struct{ Secondary int }
	// nimbusPatch is a change of a NIC. A list that is nil stays.
	nimbusPatch struct {
		Fingerprint string   `json:"fingerprint"`
		Secondary   []string `json:"secondary"` // addresses, or "any"
		Groups      []string `json:"groups"`
	}
	nimbusPage[T any] struct {
		Items []T    `json:"items"`
		Next  string `json:"next"`
	}
	nimbusError struct {
		Error struct{ Code, Message string }
	}
)

// Self implements driver.Driver.
func (d *nimbus) Self(ctx context.Context) (driver.Self, error) {
	i, err := get[nimbusInstance](ctx, d, "/metadata/instance", nil)
	return driver.Self{Instance: i.ID, Type: i.Type, Region: i.Region, Zone: i.Zone, VPC: i.Network}, err
}

// Shape implements driver.Driver.
func (d *nimbus) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	t, err := get[nimbusType](ctx, d, "/types/"+url.PathEscape(s.Type), nil)
	return driver.Shape{Type: s.Type, ENIs: 1, V4: 1 + t.Secondary}, err
}

// Alive implements driver.Driver. The API keeps those that were ended for a day, and then
// lists them no longer.
func (d *nimbus) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	known, err := list[nimbusInstance](ctx, d, "/instances", url.Values{"id": instances})
	if err != nil {
		return nil, err
	}
	states := map[string]cloud.State{}
	for _, id := range instances {
		states[id] = cloud.Gone
	}
	for _, i := range known {
		if i.State != "TERMINATED" {
			states[i.ID] = cloud.Running
		}
	}
	return states, nil
}

// Subnets implements driver.Driver.
func (d *nimbus) Subnets(ctx context.Context, f driver.SubnetFilter) (out []driver.Subnet, err error) {
	all, err := list[nimbusSubnet](ctx, d, "/subnets", url.Values{})
	for _, s := range all {
		byLabel := len(f.Tags) > 0 && s.Network == f.VPC
		for key, value := range f.Tags {
			got, has := s.Labels[key]
			byLabel = byLabel && has && got == value
		}
		if byLabel || slices.Contains(f.IDs, s.ID) {
			out = append(out, driver.Subnet{ID: s.ID, VPC: s.Network, Zone: s.Zone, V4: s.Range, Gateway4: s.Gateway,
				Pods: []netip.Prefix{s.Pods}, Free: s.PodsFree, Ready: true, Tags: s.Labels})
		}
	}
	return out, err
}

// Interfaces implements driver.Driver. No NIC carries a mark: nobody here makes one.
func (d *nimbus) Interfaces(ctx context.Context, f driver.Filter) (out []driver.Interface, err error) {
	all, err := list[nimbusNIC](ctx, d, "/nics", url.Values{"id": f.IDs, "instance": {f.Attached.Instance}})
	return nicsOf(all), err
}

func nicsOf(all []nimbusNIC) (out []driver.Interface) {
	for _, n := range all {
		out = append(out, driver.Interface{ID: n.ID, MAC: n.MAC, Subnet: n.Subnet, VPC: n.Network, Zone: n.Zone, Groups: n.Groups,
			State: driver.Attached, Instance: n.Instance, Created: n.Created, Primary: true, V4: n.Address, Singles: n.Secondary})
	}
	return out
}

// Page implements driver.Driver.
func (d *nimbus) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	p, err := get[nimbusPage[nimbusNIC]](ctx, d, "/nics", withPage(url.Values{"network": {s.VPC}, "instance": s.Attached}, s.Next))
	return driver.Page{Interfaces: nicsOf(p.Items), Next: p.Next}, err
}

// Assign implements driver.Driver.
func (d *nimbus) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	before, after, err := d.patch(ctx, a.On.ID, func(n nimbusNIC) (p nimbusPatch, err error) {
		p.Secondary = append(texts(n.Secondary), slices.Repeat([]string{"any"}, a.Count.Singles)...)
		return p, nil
	})
	return driver.Assigned{Addresses: lacking(after.Secondary, before.Secondary)}, err
}

// Unassign implements driver.Driver.
func (d *nimbus) Unassign(ctx context.Context, u driver.Unassign) error {
	_, _, err := d.patch(ctx, u.On.ID, func(n nimbusNIC) (p nimbusPatch, err error) {
		if lacks := lacking(u.Addresses, n.Secondary); len(lacks) > 0 {
			return p, &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.NoSuchAddress, Detail: fmt.Sprintf("the NIC has no %s", lacks)}
		}
		p.Secondary = texts(lacking(n.Secondary, u.Addresses))
		return p, nil
	})
	return err
}

// SetGroups implements driver.Driver.
func (d *nimbus) SetGroups(ctx context.Context, id string, groups []string, _ string) error {
	_, _, err := d.patch(ctx, id, func(nimbusNIC) (nimbusPatch, error) { return nimbusPatch{Groups: groups}, nil })
	return err
}

// patch reads a NIC and changes it, if nobody else has in between.
func (d *nimbus) patch(ctx context.Context, id string, change func(nimbusNIC) (nimbusPatch, error)) (before, after nimbusNIC, err error) {
	path := "/nics/" + url.PathEscape(id)
	if before, err = get[nimbusNIC](ctx, d, path, nil); err != nil {
		return before, after, err
	}
	p, err := change(before)
	if err != nil {
		return before, after, err
	}
	p.Fingerprint = before.Fingerprint
	after, err = call[nimbusNIC](ctx, d, http.MethodPatch, path, nil, p)
	if err != nil {
		after = before
	}
	return before, after, err
}

// errOneNIC refuses what a cloud whose instances have one NIC does not have.
var errOneNIC = &driver.Error{Kind: cloud.ErrLimit, Detail: "an instance has its one NIC"}

// The rest of driver.Driver is about further ENIs.
func (d *nimbus) Create(context.Context, driver.Create) (driver.Interface, error) {
	return driver.Interface{}, errOneNIC
}
func (d *nimbus) Attach(context.Context, driver.Attach) (string, error)      { return "", errOneNIC }
func (d *nimbus) Bind(context.Context, string, string) error                 { return errOneNIC }
func (d *nimbus) Detach(context.Context, driver.Interface, string) error     { return errOneNIC }
func (d *nimbus) Delete(context.Context, string, string) error               { return errOneNIC }
func (d *nimbus) Rewrite(context.Context, string, driver.Mark, string) error { return errOneNIC }

func errKeepsNone() error {
	return &driver.Error{Kind: cloud.ErrForbidden, Detail: "no range is kept"}
}

func (d *nimbus) Shapes(context.Context, []string) (map[string]driver.Shape, error) {
	return nil, &driver.Error{Kind: cloud.ErrForbidden, Detail: "the limits of types are not told"}
}

func (d *nimbus) Reserve(context.Context, driver.Reservation) (string, error) {
	return "", errKeepsNone()
}
func (d *nimbus) Unreserve(context.Context, string) error { return errKeepsNone() }
func (d *nimbus) Reservations(context.Context, string) ([]driver.Reservation, error) {
	return nil, errKeepsNone()
}

func texts(addrs []netip.Addr) []string {
	out := []string{}
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

// lacking returns what of a list is not in another.
func lacking(list, from []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(list), func(a netip.Addr) bool { return slices.Contains(from, a) })
}

func get[T any](ctx context.Context, d *nimbus, path string, q url.Values) (T, error) {
	return call[T](ctx, d, http.MethodGet, path, q, nil)
}

// list returns the items of all pages.
func list[T any](ctx context.Context, d *nimbus, path string, q url.Values) (all []T, err error) {
	for next := ""; ; {
		page, err := get[nimbusPage[T]](ctx, d, path, withPage(q, next))
		if all = append(all, page.Items...); err != nil || page.Next == "" {
			return all, err
		}
		next = page.Next
	}
}

func withPage(q url.Values, page string) url.Values {
	with := maps.Clone(q)
	with.Set("page", page)
	return with
}

// call makes a request, once.
func call[T any](ctx context.Context, d *nimbus, method, path string, q url.Values, in any) (out T, err error) {
	// Of a read nothing can have happened, of a change that has left anything.
	unsure := cloud.ErrUnavailable
	if method != http.MethodGet {
		unsure = cloud.ErrUnknown
	}
	body, wrong := json.Marshal(in)
	r, err := http.NewRequestWithContext(ctx, method, "https://api.nimbus.example"+path+"?"+q.Encode(), bytes.NewReader(body))
	if err = errors.Join(err, wrong); err != nil {
		return out, &driver.Error{Kind: cloud.ErrForbidden, Detail: err.Error()}
	}
	resp, err := d.http.Do(r)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		unsure = cloud.ErrUnavailable // it never left
	}
	if err != nil {
		return out, &driver.Error{Kind: unsure, Detail: err.Error()}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	switch {
	case err != nil:
		return out, &driver.Error{Kind: unsure, Detail: err.Error()}
	case resp.StatusCode >= 300:
		return out, failureOf(resp, answer, unsure)
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, &driver.Error{Kind: unsure, Detail: "bad answer: " + err.Error()}
	}
	return out, nil
}

// failureOf is what an answer that is no success means.
func failureOf(resp *http.Response, answer []byte, unsure error) error {
	var said nimbusError
	_ = json.Unmarshal(answer, &said) // what is none is told by its status
	out := &driver.Error{Kind: unsure, Detail: fmt.Sprintf("%s: %s", cmp.Or(said.Error.Code, resp.Status), said.Error.Message)}
	switch said.Error.Code {
	case "RATE_LIMITED":
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		out.Kind, out.RetryAfter = cloud.ErrThrottled, time.Duration(seconds)*time.Second
	case "PERMISSION_DENIED":
		out.Kind, out.Why = cloud.ErrForbidden, cloud.Unauthorized
	case "OVERLOADED": // refused before anything was done
		out.Kind = cloud.ErrUnavailable
	case "NIC_NOT_FOUND":
		out.Kind, out.Why = cloud.ErrNotFound, cloud.NoSuchInterface
	case "STALE_FINGERPRINT":
		out.Kind, out.Why = cloud.ErrUnavailable, cloud.Busy
	case "RANGE_EXHAUSTED":
		out.Kind = cloud.ErrSubnetFull
	case "TOO_MANY_ADDRESSES":
		out.Kind = cloud.ErrLimit
	case "INVALID":
		out.Kind = cloud.ErrForbidden
	}
	return out
}
