package bce

import (
	"context"
	"errors"
	"time"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
)

// Sweep deletes the cluster's ENIs that are attached nowhere and older than age,
// and returns their ids. In this cloud an ENI outlives its instance, so that one
// agent of the cluster has to call this now and then. A young one may be on its way
// to its instance: age must be longer than the longest creation, and longer than
// clocks differ.
func (c *Client) Sweep(ctx context.Context, age time.Duration) (deleted []string, err error) {
	defer plain(&err)
	const op = "Sweep"
	me, err := c.whoami(ctx, op)
	if err != nil {
		return nil, err
	}
	all, err := c.list(ctx, call{op: op, object: me.vpc}, sdk.ListEniArgs{VpcId: me.vpc})
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range all {
		if !c.isLeaked(e, age) {
			continue
		}
		if err := c.deleteENI(ctx, call{op: op, object: e.EniId}); err != nil {
			plain(&err)
			errs = append(errs, err)
			continue
		}
		deleted = append(deleted, e.EniId)
	}
	return deleted, errors.Join(errs...)
}

// isLeaked tells whether an ENI is one of the cluster that nobody will come back
// for. One that this process is making is not.
func (c *Client) isLeaked(e sdk.Eni, age time.Duration) bool {
	m, ok := parseMark(e.Description)
	if !ok || m.cluster != c.o.Cluster || e.Name != nameOf(m.instance) || e.Status != available || !validID(e.EniId) {
		return false
	}
	c.mu.Lock()
	_, making := c.making[m.token]
	c.mu.Unlock()
	born := m.asked
	if t := parseTime(e.CreatedTime); t.After(born) {
		born = t
	}
	return !making && time.Since(born) > age
}
