package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// changeCall makes a call that changes something and returns only an error.
func (d *Driver) changeCall(ctx context.Context, action, token string, effect func(*Tx) error) error {
	if !d.traits.AssignTokens && action != ActCreate {
		token = "" // as with EC2
	}
	_, err := carryOut(ctx, d, Call{Action: action, Mutates: true, Token: token}, func(tx *Tx) (struct{}, error) { return struct{}{}, effect(tx) })
	return err
}

func tagsOf(m driver.Mark, more map[string]string) map[string]string {
	tags := maps.Clone(more)
	if tags == nil {
		tags = map[string]string{}
	}
	tags[tagInstance], tags[tagToken], tags[tagAsked] = m.Instance, m.Token, m.Asked.Format(time.RFC3339Nano)
	tags[tagCluster], tags[tagIndex] = m.Cluster, strconv.Itoa(m.Index)
	if m.V6.IsValid() {
		tags[tagV6] = m.V6.String()
	}
	return tags
}

// Create implements driver.Driver.
func (d *Driver) Create(ctx context.Context, asked driver.Create) (driver.Interface, error) {
	w := AddressRequest{CountV4: asked.V4.Singles, CountV6: asked.V6.Singles, BlocksV4: asked.V4.Blocks, BlocksV6: asked.V6.Blocks}
	if asked.IPv6 {
		w.CountV6++
	}
	groups := slices.Clone(asked.Groups)
	params := fmt.Sprint(asked.Subnet, groups, tagsOf(asked.Mark, asked.Tags), w, asked.IPv6)
	return carryOut(ctx, d, Call{Action: ActCreate, Mutates: true, Token: asked.Token, Params: params}, func(tx *Tx) (driver.Interface, error) {
		made, err := tx.Create(Create{Subnet: asked.Subnet, Groups: groups, Tags: tagsOf(asked.Mark, asked.Tags), First6: asked.IPv6 && !d.traits.MarksV6, AddressRequest: w})
		if err != nil {
			return driver.Interface{}, err
		}
		if !d.traits.CreateFills {
			return driver.Interface{ID: made.ID}, nil // as with BCE
		}
		return d.interfaceOf(tx, made, asked.Mark), nil
	})
}

// Attach implements driver.Driver.
func (d *Driver) Attach(ctx context.Context, w driver.Attach) (string, error) {
	if d.traits.NoIndex {
		w.Index = -1
	}
	token := w.Token
	if !d.traits.AssignTokens {
		token = ""
	}
	return carryOut(ctx, d, Call{Action: ActAttach, Mutates: true, Token: token}, func(tx *Tx) (string, error) {
		at, err := tx.Attach(Attach{Interface: w.ID, Instance: w.Instance, Index: w.Index, Card: w.Card, DeleteOnTermination: !d.traits.Binds && !d.traits.NoIndex})
		return at.ID, err
	})
}

// Bind implements driver.Driver.
func (d *Driver) Bind(ctx context.Context, id, attachment string) error {
	yes := true
	return d.changeCall(ctx, ActModify, "", func(tx *Tx) error {
		return tx.Modify(id, Edit{Attachment: attachment, DeleteOnTermination: &yes})
	})
}

// Rewrite implements driver.Driver.
func (d *Driver) Rewrite(ctx context.Context, id string, m driver.Mark, token string) error {
	return d.changeCall(ctx, ActModify, token, func(tx *Tx) error { return tx.Tag([]string{id}, tagsOf(m, nil)) })
}

// SetGroups implements driver.Driver.
func (d *Driver) SetGroups(ctx context.Context, id string, groups []string, token string) error {
	groups = slices.Clone(groups)
	return d.changeCall(ctx, ActModify, token, func(tx *Tx) error { return tx.Modify(id, Edit{Groups: groups}) })
}

// Detach implements driver.Driver.
func (d *Driver) Detach(ctx context.Context, i driver.Interface, token string) error {
	return d.changeCall(ctx, ActDetach, token, func(tx *Tx) error { _, err := tx.Detach(i.Attachment, false); return err })
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, id, token string) error {
	return d.changeCall(ctx, ActDelete, token, func(tx *Tx) error { return tx.Delete(id) })
}

// Assign implements driver.Driver.
func (d *Driver) Assign(ctx context.Context, asked driver.Assign) (driver.Assigned, error) {
	named := slices.Clone(asked.Addresses)
	request := AddressRequest{V4: named, CountV4: asked.Count.Singles, BlocksV4: asked.Count.Blocks, Reassign: asked.Take && d.traits.Moves}
	if asked.Family == eni.IPv6 {
		request = AddressRequest{V6: named, CountV6: asked.Count.Singles, BlocksV6: asked.Count.Blocks}
	}
	if d.traits.CrossSubnet {
		request.Subnet = asked.Subnet
	}
	token := asked.Token
	if !d.traits.AssignTokens {
		token = ""
	}
	return carryOut(ctx, d, Call{Action: ActAssign, Mutates: true, Token: token}, func(tx *Tx) (driver.Assigned, error) {
		got, err := tx.Assign(asked.On.ID, request)
		return driver.Assigned{Addresses: slices.Concat(got.V4, got.V6), Blocks: got.Prefixes}, err
	})
}

// Unassign implements driver.Driver.
func (d *Driver) Unassign(ctx context.Context, u driver.Unassign) error {
	got := Got{Prefixes: slices.Clone(u.Blocks)}
	if u.Family == eni.IPv4 {
		got.V4 = slices.Clone(u.Addresses)
	} else {
		got.V6 = slices.Clone(u.Addresses)
	}
	return d.changeCall(ctx, ActUnassign, u.Token, func(tx *Tx) error { return tx.Unassign(u.On.ID, got) })
}
