package convert

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// Status reads a status.
func Status(s crd.NodeNetworkStatus) (order.Status, order.Tells, error) {
	var r reader
	status := order.Status{Mode: parseMode(s.Mode), Revision: s.Revision, Epoch: s.Epoch, Created: s.Created, Limits: readLimits(s.Limits),
		Releasing: r.parsePrefixes(s.Releasing), LeavingInterfaces: slices.Clone(s.LeavingInterfaces)}
	for _, e := range s.ENIs {
		status.ENIs = append(status.ENIs, r.readENI(e))
	}
	for _, q := range s.Quarantined {
		status.Quarantined = append(status.Quarantined, order.Quarantined{Prefix: r.parsePrefix(q.Address), Until: q.Until.Time})
	}
	for _, v := range s.Reserved {
		status.Reserved = append(status.Reserved, order.Reserved{Addr: r.parsePrefix(v.Address).Addr(), Topology: v.Topology, Namespace: v.Namespace, Pod: v.Pod, UID: v.UID})
	}
	tells := order.Tells{Observed: s.ObservedGeneration, Reclaim: int(s.Reclaim)}
	for _, b := range s.Causes {
		tells.Causes = append(tells.Causes, order.Cause{Reason: b.Reason, Message: b.Message, Until: timeOf(b.Until)})
	}
	if s.Handover != nil {
		tells.Tokens = slices.Clone(s.Handover.Tokens)
	}
	return status, tells, errors.Join(r.errs...)
}

// ToStatus puts what pkg/order knows of a status into one. What it does not know stays as it is in was: the instance's
// facts but for the limits, conditions, counts and times.
func ToStatus(status order.Status, tells order.Tells, was crd.NodeNetworkStatus) crd.NodeNetworkStatus {
	next := was
	next.Mode, next.Revision, next.Epoch, next.Created, next.Limits = modeText(status.Mode), status.Revision, status.Epoch, status.Created, toLimits(status.Limits)
	next.Releasing, next.LeavingInterfaces = prefixTexts(status.Releasing), slices.Clone(status.LeavingInterfaces)
	created := map[string]*metav1.Time{}
	for _, e := range was.ENIs {
		created[e.ID] = e.Created
	}
	next.ENIs, next.Quarantined, next.Reserved, next.Causes, next.Handover = nil, nil, nil, nil, nil
	for _, e := range status.ENIs {
		made := toENI(e)
		made.Created = created[e.ID]
		next.ENIs = append(next.ENIs, made)
	}
	for _, q := range status.Quarantined {
		next.Quarantined = append(next.Quarantined, crd.Quarantined{Address: prefixText(q.Prefix), Until: metav1.NewTime(q.Until)})
	}
	for _, v := range status.Reserved {
		next.Reserved = append(next.Reserved, crd.Reserved{Address: v.Addr.String(), Topology: v.Topology, Namespace: v.Namespace, Pod: v.Pod, UID: v.UID})
	}
	next.ObservedGeneration, next.Reclaim = tells.Observed, int32(tells.Reclaim)
	for _, b := range tells.Causes {
		next.Causes = append(next.Causes, crd.Cause{Reason: b.Reason, Message: b.Message, Until: timeAt(b.Until)})
	}
	if len(tells.Tokens) > 0 {
		next.Handover = &crd.StatusHandover{Tokens: slices.Clone(tells.Tokens)}
	}
	return next
}

// eniStates are all that an ENI may be in.
var eniStates = []order.ENIState{order.Creating, order.Attached, order.Detached, order.ENILeaving}

func (r *reader) readENI(e crd.ENI) order.ENI {
	n := order.ENI{ID: e.ID, Index: int(e.Index), MAC: e.MAC, Subnet: e.Subnet, Token: e.Token, Topology: e.Topology,
		V4: r.readNet(e.V4), V6: r.readNet(e.V6), Addresses: r.parsePrefixes(e.Addresses)}
	at := slices.IndexFunc(eniStates, func(s order.ENIState) bool { return s.String() == e.State })
	if at < 0 { // of a later release: nothing of it is taken for gone, nor given to pods
		r.noteWrong(fmt.Errorf("ENI %s is in an unknown state %q", e.ID, e.State))
		return n
	}
	n.State = eniStates[at]
	return n
}

func toENI(e order.ENI) crd.ENI {
	return crd.ENI{ID: e.ID, Index: int32(e.Index), MAC: e.MAC, Subnet: e.Subnet, State: e.State.String(), Token: e.Token, Topology: e.Topology,
		V4: toNet(e.V4), V6: toNet(e.V6), Addresses: prefixTexts(e.Addresses)}
}

func (r *reader) readNet(f *crd.Family) (n eni.Net) {
	if f == nil {
		return n
	}
	var err error
	n.Primary, err = netip.ParsePrefix(f.Primary)
	r.noteWrong(err)
	if f.Gateway != "" {
		n.Gateway, err = netip.ParseAddr(f.Gateway)
		r.noteWrong(err)
	}
	return n
}

func toNet(n eni.Net) *crd.Family {
	if !n.IsValid() {
		return nil
	}
	f := &crd.Family{Primary: n.Primary.String()}
	if n.Gateway.IsValid() {
		f.Gateway = n.Gateway.String()
	}
	return f
}
