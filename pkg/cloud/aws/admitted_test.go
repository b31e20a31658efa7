package aws

import (
	"context"
	"errors"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A read that the SDK makes again counts in the account's rate as any request does.
func TestWhatIsMadeAgainIsAdmittedToo(t *testing.T) {
	s := newSite(t, kind{})
	admitted, most := map[string]int{}, 1000
	c, _ := s.open(t, "i-1", engine.Options{Admit: func(_ context.Context, action string) error {
		if admitted[action] >= most {
			return errors.New("no token is left")
		}
		admitted[action]++
		return nil
	}})
	look := func(refusals int) error {
		for range refusals {
			s.Endpoint.FailNext(describeENIs, sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
		}
		_, err := c.Interfaces(t.Context())
		return err
	}
	must(t, look(2))
	for action, made := range s.Calls() {
		if action != "Metadata" && admitted[action] < made {
			t.Errorf("%d requests of %s were made and %d admitted", made, action, admitted[action])
		}
	}
	made := s.Calls()[describeENIs]
	most = admitted[describeENIs] + 1
	if err := look(2); !errors.Is(err, cloud.ErrThrottled) || s.Calls()[describeENIs] > made+1 {
		t.Errorf("%d requests where one is admitted: %v", s.Calls()[describeENIs]-made, err)
	}
}
