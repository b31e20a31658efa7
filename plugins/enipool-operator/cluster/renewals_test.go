package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// failing is a lease that can't be read or written if there is an error of that.
type failing struct {
	coordinationclient.LeaseInterface
	read, written error
}

func (f *failing) Leases(string) coordinationclient.LeaseInterface { return f }

func (f *failing) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return &coordinationv1.Lease{}, f.read
}

func (f *failing) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l, f.written
}

// Why an operator can't lead is said once, with what to do, however often it is tried, and so is that it is over. Where the lease can be read
// and not written, reading says nothing.
func TestWhyTheLeaseFailsIsSaidOnce(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{apierrors.NewForbidden(leases, "enipool-operator", errors.New("no role")), "the Role enipool-operator in the namespace of the lease allows it"},
		{apierrors.NewUnauthorized("no"), "does not take the service account's token"},
		{errors.New("dial tcp 10.0.0.1:443: connect: connection refused"), "the API server does not answer"},
	} {
		for _, done := range []string{"read", "written"} {
			var log bytes.Buffer
			f := &failing{}
			r := &renewals{log: slog.New(slog.NewTextHandler(&log, nil)), Interface: &resourcelock.LeaseLock{Client: f, LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "enipool-operator"}}}
			try := func() {
				if _, _, err := r.Get(t.Context()); err == nil {
					_ = r.Update(t.Context(), resourcelock.LeaderElectionRecord{})
				}
			}
			try()
			if log.Len() > 0 {
				t.Errorf("nothing fails: %s", &log)
			}
			if f.read = tt.err; done == "written" {
				f.read, f.written = nil, tt.err
			}
			for range 3 {
				try()
			}
			if got := strings.Count(log.String(), tt.want); got != 1 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "default/enipool-operator") {
				t.Errorf("%q is said %d times:\n%s", tt.want, got, &log)
			}
			if f.read, f.written = nil, nil; done == "read" { // that there is none is an answer
				f.read = apierrors.NewNotFound(leases, "enipool-operator")
			}
			try()
			if got := strings.Count(log.String(), "the lease can be "+done+" again"); got != 1 {
				t.Errorf("that it is over is said %d times:\n%s", got, &log)
			}
		}
	}
}

// That another operator was faster is no failure.
func TestALostRaceForTheLeaseIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	f := &failing{}
	r := &renewals{log: slog.New(slog.NewTextHandler(&log, nil)), Interface: &resourcelock.LeaseLock{Client: f, LeaseMeta: metav1.ObjectMeta{Name: "enipool-operator"}}}
	if _, _, err := r.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.written = apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "enipool-operator", errors.New("changed"))
	if err := r.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil || log.Len() > 0 {
		t.Errorf("%v, logged %s", err, &log)
	}
}

// The lease is listed beside the operators' pods by the label that they have.
func TestTheLeaseHasTheLabelOfThePods(t *testing.T) {
	if lock := (Election{Name: "enipool-operator", Namespace: "default"}).makeLock(); lock.Labels["app.kubernetes.io/name"] != "enipool-operator" {
		t.Errorf("labels %v", lock.Labels)
	}
}
