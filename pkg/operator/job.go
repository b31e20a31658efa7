package operator

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/quota"
)

// job is a call to the cloud: as a step of a plan, with what the step does not have.
type job struct {
	pool.Step
	quota.Request
	exact
	token    string         // of Create
	prefixes []netip.Prefix // of Release
	moved    *move          // in the subnet
	began    time.Duration
	ticket   *ticket
	member   *member
}

// limits of jobs: an ENI may take a while to be attached or detached, and to wait for its tokens.
const (
	longJob  = 10 * time.Minute
	shortJob = 2 * time.Minute
)

// limit returns how long the job may take.
func (j *job) limit() time.Duration {
	if j.Do == pool.Create || j.Do == pool.Delete {
		return longJob
	}
	return shortJob
}

// outcome is what came of a job.
type outcome struct {
	addrs []netip.Addr    // of Assign
	nic   cloud.Interface // of Create
	err   error
}

// call makes the call.
func (j *job) call(ctx context.Context, client cloud.Cloud, region cloud.Region, instance string, limits eni.Limits) (out outcome) {
	ctx = context.WithValue(ctx, ticketKey{}, j.ticket)
	if len(j.bring) > 0 {
		from := cloud.Origin{ENI: j.from.ENI}
		if j.cross {
			from.Subnet = j.Subnet
		}
		out.addrs, out.err = region.AssignExactly(ctx, instance, j.ENI, j.bring, from)
		return out
	}
	switch j.Do {
	case pool.Assign:
		out.addrs, out.err = client.AssignAddresses(ctx, j.ENI, j.Family, j.Count)
	case pool.Create:
		out.nic, out.err = client.CreateInterface(ctx, cloud.Create{Token: j.token, Subnet: j.Subnet, V4: j.V4, V6: j.V6})
	case pool.Release:
		out.err = client.UnassignAddresses(ctx, j.ENI, order.Addresses(limits, j.prefixes...))
	case pool.Delete:
		out.err = client.DeleteInterface(ctx, j.ENI)
	}
	return out
}

// deeds returns what is to be written of an outcome.
func (j *job) deeds(out outcome, uid string) (list []deed) {
	known := out.err == nil || !errors.Is(out.err, cloud.ErrUnknown)
	switch {
	case j.Do == pool.Assign && len(out.addrs) > 0:
		list = append(list, func(t *order.Term, v order.View, now order.Moment) order.Status {
			return t.Assigned(v, now, j.ENI, prefixesOf(v.Status.Limits, out.addrs)...)
		})
	case j.Do == pool.Create && out.err == nil:
		list = append(list, func(t *order.Term, v order.View, now order.Moment) order.Status {
			made := madeENI(v.Status.Limits, out.nic)
			made.Token, made.Topology = j.token, j.topology
			return t.Made(v, now, uid, made)
		})
	case j.Do == pool.Release && known:
		list = append(list, func(t *order.Term, v order.View, now order.Moment) order.Status {
			// After any known outcome nothing is under way any more; but only without an error the addresses are gone.
			t.Answered(j.prefixes...)
			if out.err != nil {
				return v.Status
			}
			return t.Unassigned(v, now, j.prefixes...)
		})
	case j.Do == pool.Delete && out.err == nil:
		list = append(list, func(t *order.Term, v order.View, now order.Moment) order.Status {
			if !hasENI(v.Status, j.ENI) {
				return v.Status
			}
			return t.Deleted(v, j.ENI)
		})
	}
	return list
}

// brings returns how many addresses of the subnet the outcome has taken; below zero, how many came back.
func (j *job) brings(out outcome, limits eni.Limits) int {
	switch {
	case j.Do == pool.Assign && errors.Is(out.err, cloud.ErrUnknown):
		return j.Count
	case j.Do == pool.Assign:
		return len(out.addrs)
	case j.Do == pool.Create && out.err == nil:
		return 1 + len(out.nic.Addresses)
	case j.Do == pool.Create && errors.Is(out.err, cloud.ErrUnknown):
		return 1 + max(j.V4, j.V6)
	case out.err == nil:
		return -len(order.Addresses(limits, j.prefixes...))
	}
	return 0
}
