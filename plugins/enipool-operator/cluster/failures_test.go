package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/enipool/enipool/pkg/operator"
)

// An operator whose account may not list a kind gets the lease each few seconds. It says what to apply at once, and then seldom; another failure it says at once.
func TestAnOperatorThatCantLeadSaysSoSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{of: map[string]coordinationv1.Lease{}}
		o := s.stand(t, "kube-system", &leading{})
		o.stop()
		o.log.Reset()
		var why atomic.Pointer[error]
		forbidden := fmt.Errorf("read the cluster's objects: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("may not list")))
		why.Store(&forbidden)
		var terms atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = o.election.Run(ctx, func(context.Context, operator.Lead) error {
				terms.Add(1)
				return *why.Load()
			})
		}()
		time.Sleep(14 * time.Minute)
		synctest.Wait()
		said := o.log.String()
		if got := strings.Count(said, "level=ERROR"); got != 3 || terms.Load() < 20 || !strings.Contains(said, "kubectl apply --server-side --kustomize conf/kubernetes/operator") || !strings.Contains(said, "times=1 ") {
			t.Errorf("of %d terms it says %d times:\n%s", terms.Load(), got, said)
		}
		if strings.Contains(said, "this operator leads") {
			t.Errorf("it says that it leads:\n%s", said)
		}
		other := errors.New("another thing")
		why.Store(&other)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(o.log.String(), "another thing") {
			t.Error("another failure is not said")
		}
		cancel()
		<-ended
	})
}
