package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaseName is that of the operators' Lease.
const leaseName = "enipool-operator"

// epochKey is the annotation of the Lease that has the leader's number.
const epochKey = "enipool.io/epoch"

// Leader is who calls the cloud for the nodes that have an operator.
type Leader struct {
	Leads   bool      `json:"leads"`
	Holder  string    `json:"holder,omitempty"` // host and process; who led last where nobody does
	Since   time.Time `json:"since,omitzero"`
	Renewed time.Time `json:"renewed,omitzero"`
	Epoch   int64     `json:"epoch,omitempty"`
	Unknown string    `json:"unknown,omitempty"` // why it can't be told

	Namespace string `json:"namespace,omitempty"` // where the Lease was looked for
	Elsewhere string `json:"elsewhere,omitempty"` // a namespace that has one, where that has none
}

// rounds is how often a Lease that has run out by this machine's clock is read once more, and every is in which time: a leader
// renews it every 2 seconds, whatever clock it has.
const (
	rounds = 6
	every  = 500 * time.Millisecond
)

// FindLeader tells who leads.
func (a *API) FindLeader(ctx context.Context) (who Leader) {
	defer func() { who.Namespace = a.Namespace }()
	first, err := a.readLease(ctx)
	switch {
	case err != nil:
		return Leader{Unknown: err.Error()}
	case first == nil:
		return Leader{Elsewhere: findElsewhere(ctx, a)}
	}
	who = leaderOf(first, time.Now())
	// By another machine's clock it may have run out long ago and be renewed all the time.
	for range rounds {
		if who.Leads || who.Holder == "" {
			break
		}
		select {
		case <-ctx.Done():
			return who
		case <-time.After(every):
		}
		if next, err := a.readLease(ctx); err == nil && next != nil {
			who.Leads = !leaderOf(next, time.Now()).Renewed.Equal(who.Renewed)
		}
	}
	return who
}

// readLease returns the operators' Lease, nil if there is none.
func (a *API) readLease(ctx context.Context) (*coordinationv1.Lease, error) {
	l := &coordinationv1.Lease{}
	err := a.leases.Get().Namespace(a.Namespace).Resource("leases").Name(leaseName).Do(ctx).Into(l)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("leases", err)
	}
	return l, nil
}

// findElsewhere returns the first namespace that has a Lease of operators, "" if none has one or not all may be listed.
func findElsewhere(ctx context.Context, a *API) string {
	which, list := metav1.ListOptions{FieldSelector: "metadata.name=" + leaseName}, &coordinationv1.LeaseList{}
	if err := a.leases.Get().Resource("leases").VersionedParams(&which, metav1.ParameterCodec).Do(ctx).Into(list); err != nil {
		return ""
	}
	var in []string
	for _, l := range list.Items {
		in = append(in, l.Namespace)
	}
	if len(in) == 0 {
		return ""
	}
	return slices.Min(in)
}

// leaderOf reads a Lease, nil for none, by a clock.
func leaderOf(l *coordinationv1.Lease, now time.Time) (who Leader) {
	if l == nil {
		return who
	}
	s := l.Spec
	if s.HolderIdentity != nil {
		who.Holder = *s.HolderIdentity
	}
	if s.AcquireTime != nil {
		who.Since = s.AcquireTime.Time
	}
	if s.RenewTime != nil {
		who.Renewed = s.RenewTime.Time
	}
	who.Epoch, _ = strconv.ParseInt(l.Annotations[epochKey], 10, 64)
	who.Leads = who.Holder != "" && s.LeaseDurationSeconds != nil && now.Before(who.Renewed.Add(time.Duration(*s.LeaseDurationSeconds)*time.Second))
	return who
}

// host returns the node that the leader's process runs on, as far as its name tells.
func (l Leader) host() string {
	at := strings.LastIndexByte(l.Holder, '_')
	return l.Holder[:max(at, 0)]
}

// isMissed tells whether an operator led once and none does, or nobody knows.
func (l Leader) isMissed() bool {
	return l.Unknown != "" || !l.Leads && (!l.Renewed.IsZero() || l.Elsewhere != "")
}

// Line says who leads.
func (l Leader) Line(now time.Time) string {
	switch {
	case l.Unknown != "":
		return "operator: not known: " + l.Unknown
	case l.Leads:
		return fmt.Sprintf("operator: %s leads since %s, epoch %d", l.Holder, age(now, l.Since), l.Epoch)
	case l.Elsewhere != "":
		return fmt.Sprintf("operator: namespace %s has no Lease %s, and namespace %s has one: --namespace %[3]s shows who leads", l.Namespace, leaseName, l.Elsewhere)
	case l.Renewed.IsZero():
		return "operator: nobody leads, and nobody ever has, by the Lease " + leaseName + " of namespace " + l.Namespace + ", which --namespace names; agents that ask for an operator wait, others call the cloud themselves"
	case l.Holder == "":
		return fmt.Sprintf("operator: nobody leads for %s (%s); below is what was known then, with its age", age(now, l.Renewed), l.whyCommand())
	}
	return fmt.Sprintf("operator: nobody leads: the lease of %s was renewed %s ago (%s); below is what was known then, with its age", l.Holder, age(now, l.Renewed), l.whyCommand())
}

// whyCommand is what shows whether operators run.
func (l Leader) whyCommand() string {
	return "kubectl --namespace " + l.Namespace + " get deployments,pods -l app.kubernetes.io/name=enipool-operator"
}

// age says how long ago something was, as kubectl does: in its largest unit or two.
func age(now, at time.Time) string {
	d := max(0, now.Sub(at))
	switch {
	case at.IsZero():
		return "-"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
