package operator

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// checkEvery is how often the cloud is asked what the operator may do, however often people ask.
const checkEvery = time.Minute

// checks keeps the last check of the cloud.
type checks struct {
	mu    sync.Mutex
	last  []cloud.Finding
	asked time.Time
}

// Check returns what the operator may do in the cloud, as a look and dry runs tell. It changes nothing. ErrNotLeading:
// this operator may send nothing. A cloud that has nothing to check tells nothing.
func (o *Operator) Check(ctx context.Context) ([]cloud.Finding, error) {
	o.mu.Lock()
	leads := o.ended != nil
	o.mu.Unlock()
	checker, can := o.o.Region.(cloud.Checker)
	if !leads {
		return nil, ErrNotLeading
	}
	name, err := o.checkCluster(ctx)
	if err != nil {
		return nil, err
	}
	o.checks.mu.Lock() // one at a time: the others get its answer
	defer o.checks.mu.Unlock()
	now := o.o.Clock.Now()
	if can && (o.checks.asked.IsZero() || now.Sub(o.checks.asked) >= checkEvery) {
		o.checks.last, o.checks.asked = checker.Check(ctx), now
		for i := range o.checks.last { // the engine is the agents' too, and the keys that it names have the same names
			f := &o.checks.last[i]
			f.Detail, f.Fix = strings.ReplaceAll(f.Detail, "agent.yaml", "operator.yaml"), strings.ReplaceAll(f.Fix, "agent.yaml", "operator.yaml")
		}
	}
	return append(name, o.checks.last...), nil
}
