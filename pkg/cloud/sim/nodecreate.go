package sim

import (
	"context"
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// create carries out CreateInterface in three effects, each of which finds what
// an earlier call with the same token has done already.
func (a *Account) create(ctx context.Context, r request, fault Fault, attach time.Duration) (reply, error) {
	id, err := a.begin(r)
	switch {
	case err != nil:
		return reply{}, err
	case fault.Lost == AfterCreate:
		return reply{}, lost(r)
	}
	if err := a.attaching(ctx, r, attach); err != nil {
		return reply{}, failed(cloud.ErrUnknown, id, "%v before the ENI was attached", err)
	}
	a.lock()
	defer a.mu.Unlock()
	h, err := a.hand(r.Node)
	if err != nil {
		return reply{}, err
	}
	if _, err := h.Interface(id); err != nil {
		return reply{}, failed(cloud.ErrUnknown, id, "the ENI was deleted meanwhile")
	}
	return h.finish(id, r.Create, fault.Lost)
}

// begin makes the ENI of a call, or finds it.
func (a *Account) begin(r request) (id string, err error) {
	a.lock()
	defer a.mu.Unlock()
	h, err := a.hand(r.Node)
	if err != nil {
		return "", err
	}
	return h.begin(r.Create)
}

// createAtOnce is create at one moment.
func (h hand) createAtOnce(c cloud.Create) (reply, error) {
	id, err := h.begin(c)
	if err != nil {
		return reply{}, err
	}
	return h.finish(id, c, Nowhere)
}

// begin makes the ENI, or finds the one that the token has made.
func (h hand) begin(c cloud.Create) (id string, err error) {
	for _, i := range h.InterfacesOf(h.m.Name, nodeTag, h.m.Name) {
		if h.made(i) && i.Tags[tokenTag] == c.Token {
			return i.ID, nil
		}
	}
	s, none := h.Subnet(c.Subnet)
	switch {
	case c.Token == "" || len(c.Token) > 64:
		return "", failed(cloud.ErrForbidden, "", "the token has %d bytes, it must have 1 to 64", len(c.Token))
	case none != nil:
		return "", failed(cloud.ErrNotFound, c.Subnet, "no such subnet")
	case !h.m.may(c.Subnet):
		return "", failed(cloud.ErrForbidden, c.Subnet, "the node's ENIs may not lie in this subnet")
	case c.V4 > h.m.Limits.PerENI(eni.IPv4) || c.V6 > h.m.Limits.PerENI(eni.IPv6):
		return "", failed(cloud.ErrLimit, c.Subnet, "an ENI may have %d and %d addresses besides the primary",
			h.m.Limits.PerENI(eni.IPv4), h.m.Limits.PerENI(eni.IPv6))
	}
	wish, err := h.m.primaries(families(s))
	if err != nil {
		return "", err
	}
	wish.Subnet, wish.Tags = c.Subnet, map[string]string{nodeTag: h.m.Name, tokenTag: c.Token}
	made, err := h.Create(wish)
	return made.ID, h.a.inCloudsTerms(err, "")
}

// families returns those the subnet has.
func families(s Subnet) (fs []eni.Family) {
	if s.V4.IsValid() {
		fs = append(fs, eni.IPv4)
	}
	if s.V6.IsValid() {
		fs = append(fs, eni.IPv6)
	}
	return fs
}

// made tells whether CreateInterface made the ENI for the node.
func (h hand) made(i Interface) bool { return i.Tags[nodeTag] == h.m.Name }

// finish attaches and fills the ENI; if it can't, nothing is left of it.
func (h hand) finish(id string, c cloud.Create, at Place) (reply, error) {
	err := h.attach(id)
	if err == nil && at == AfterAttach {
		return reply{}, failed(cloud.ErrUnknown, "", "the answer was lost")
	}
	if err == nil {
		err = h.fill(id, c)
	}
	if err != nil && !errors.Is(err, cloud.ErrUnknown) {
		if undo := h.destroy(id); undo != nil {
			err = failed(cloud.ErrUnknown, id, "%v, and then to delete it: %v", cloud.Kind(err), undo)
		}
	}
	switch {
	case at == AfterEffect:
		return reply{}, failed(cloud.ErrUnknown, "", "the answer was lost")
	case err != nil:
		return reply{}, err
	}
	i, err := h.Interface(id)
	return reply{Interface: h.shown(i)}, h.a.inCloudsTerms(err, id)
}

// attach gives the ENI the lowest free index of its node.
func (h hand) attach(id string) error {
	i, err := h.Interface(id)
	if err != nil {
		return h.a.inCloudsTerms(err, id)
	}
	if i.Status == Available {
		at, err := h.Attach(Attach{Interface: id, Instance: h.m.Name, Index: -1, DeleteOnTermination: true})
		if err != nil {
			return h.a.inCloudsTerms(err, "")
		}
		if at.Status == Attached {
			return nil
		}
	}
	if i.Status != InUse {
		return failed(cloud.ErrUnknown, id, "it is not attached yet")
	}
	return nil
}

// fill puts the ENI's first addresses on it. Of each family that is asked for
// there is one at least. Single addresses in the place of blocks may soon be all that
// the ENI may have.
func (h hand) fill(id string, c cloud.Create) error {
	i, err := h.Interface(id)
	if err != nil || i.Tags[filledTag] != "" {
		return h.a.inCloudsTerms(err, id)
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		want := c.V4
		if f == eni.IPv6 {
			want = c.V6
		}
		had := h.count(i, f)
		got, err := h.put(i, f, want-had)
		fewer := errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit) && size(h.m.Limits, f) > 1
		if err != nil && (had+len(got) == 0 || !fewer) {
			return err
		}
	}
	return h.a.inCloudsTerms(h.Tag([]string{id}, map[string]string{filledTag: "yes"}), id)
}

// destroy detaches and deletes the ENI.
func (h hand) destroy(id string) error {
	i, err := h.Interface(id)
	if err != nil {
		return err
	}
	if i.Attachment != nil {
		if _, err := h.Detach(i.Attachment.ID, true); err != nil {
			return err
		}
	}
	return h.Delete(id)
}
