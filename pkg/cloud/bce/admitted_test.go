package bce

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A read that the driver makes again counts in the account's rate as any request does.
func TestWhatIsMadeAgainIsAdmittedToo(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	admitted, most := map[string]int{}, 1000
	c, _ := s.open(t, "i-n1", engine.Options{Admit: func(_ context.Context, action string) error {
		if admitted[action] >= most {
			return errors.New("no token is left")
		}
		admitted[action]++
		return nil
	}})
	look := func(refusals int) error {
		s.Endpoint.FailNext("ListEni", slices.Repeat([]sim.Fault{{Err: &sim.Error{Reason: sim.Throttled}}}, refusals)...)
		_, err := c.Interfaces(t.Context())
		return err
	}
	must(t, look(4))
	for action, made := range s.Calls() {
		if action != "Metadata" && admitted[action] < made {
			t.Errorf("%d requests of %s were made and %d admitted", made, action, admitted[action])
		}
	}
	made := s.Calls()["ListEni"]
	most = admitted["ListEni"] + 1
	if err := look(3); !errors.Is(err, cloud.ErrThrottled) || s.Calls()["ListEni"] > made+1 {
		t.Errorf("%d requests where one is admitted: %v", s.Calls()["ListEni"]-made, err)
	}
}
