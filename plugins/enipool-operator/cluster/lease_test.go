package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/enipool/enipool/pkg/operator"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("subnet-%d", i))
	}
	return list
}

// candidate is an operator that stands for election.
type candidate struct {
	Election
	leads  chan operator.Lead
	end    chan error // what its term returns
	ended  chan struct{}
	cancel context.CancelFunc
}

func (c *candidate) run(ctx context.Context) {
	c.leads, c.end, c.ended = make(chan operator.Lead, 1), make(chan error), make(chan struct{})
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.ended)
		_ = c.Run(ctx, func(ctx context.Context, lead operator.Lead) error {
			c.leads <- lead
			return <-c.end
		})
	}()
}

// Nobody leads before the term of the one before has returned, and each has a number above all earlier ones.
func TestOneLeadsAfterTheOther(t *testing.T) {
	config := server(t)
	set, err := kubernetes.NewForConfig(config)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start := func(name string) *candidate {
		c := &candidate{Election: Election{Client: set.CoordinationV1(), Namespace: "default", Name: "enipool-operator", Identity: name,
			Duration: 11 * time.Second, Log: slog.New(slog.DiscardHandler)}}
		c.run(ctx)
		return c
	}
	first := start("first")
	lead := <-first.leads
	if lead.Epoch != 0 || time.Since(lead.Renewed()) > 11*time.Second || lead.Renewed().After(lead.Acquired) {
		t.Errorf("%+v, renewed %s", lead, lead.Renewed())
	}
	must(t, lead.Number(ctx, 5))
	second := start("second")
	renewed := lead.Renewed()
	soon(t, "renewal", func() error {
		if !lead.Renewed().After(renewed) {
			return errors.New("not renewed")
		}
		return nil
	})
	first.cancel() // its calls go on
	select {
	case <-second.leads:
		t.Fatal("two lead")
	case <-time.After(3 * time.Second): // longer than a candidate waits between two looks
	}
	first.end <- nil
	<-first.ended
	lead = <-second.leads
	if lead.Epoch != 5 {
		t.Errorf("the second begins after epoch %d, want 5", lead.Epoch)
	}
	must(t, lead.Number(ctx, 6))

	// What an operator that does not hold the lease writes on it would be a number twice.
	if err := first.number(ctx, 7); err == nil || !contains(err, "another operator has it") {
		t.Errorf("the first writes a number: %v", err)
	}
	lease, err := set.CoordinationV1().Leases("default").Get(ctx, "enipool-operator", metav1.GetOptions{})
	must(t, err)
	if lease.Annotations[EpochKey] != "6" || *lease.Spec.HolderIdentity != "second" {
		t.Errorf("the lease: %+v", lease)
	}
	second.cancel()
	second.end <- nil
	<-second.ended
	lease, err = set.CoordinationV1().Leases("default").Get(ctx, "enipool-operator", metav1.GetOptions{})
	must(t, err)
	if *lease.Spec.HolderIdentity != "" || lease.Annotations[EpochKey] != "6" {
		t.Errorf("resigned: %+v", lease)
	}
}
