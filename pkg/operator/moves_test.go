package operator

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// noObjects is an API server without the object that is to be written.
type noObjects struct{ Objects }

func (noObjects) WriteSubnet(context.Context, *crd.Subnet) (*crd.Subnet, error) { return nil, ErrGone }

// Calls for ENIs in a subnet that the cloud does not show among those for nodes are forgotten, too, when describes have shown what they did.
func TestCallsInASubnetThatIsNotShownAreForgotten(t *testing.T) {
	var under sync.WaitGroup
	var place cloud.Place
	place.ID = "a"
	s := &subnet{place: place, object: &crd.Subnet{}}
	s.object.Name = "a"
	o := &Operator{o: Options{Objects: noObjects{}, Meter: unmetered{}, Tell: func(Notice) {}}, wake: make(chan struct{}, 1)}
	tm := &term{Operator: o, ctx: t.Context(), under: &under, subnets: map[string]*subnet{"a": s}, index: newIndex()}
	tm.o.Clock, tm.lead.Acquired = Wall{}, time.Now()
	for i := range 1000 { // a describe every five minutes, and a call in between
		m := s.takes(1)
		m.ended = time.Duration(5*i+1) * time.Minute
		var seen seen
		seen.began.Mono = time.Duration(5*i+4) * time.Minute
		tm.takePlaces(seen)
	}
	under.Wait()
	if n := len(s.moves); n > 10 {
		t.Errorf("%d calls are kept, %d of them of before the last describe", n, n)
	}
}
