package operated

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/status"
)

// install is how the kinds come into a cluster.
const install = "kubectl apply --server-side --kustomize conf/kubernetes/crds"

// Somebody deletes the CRDs, and with them the objects. Pods keep their addresses and start with what is free, both sides say what is
// missing, and when the CRDs are back both go on by themselves.
func TestTheKindsAreDeletedAndPutBack(t *testing.T) {
	t.Parallel()
	b := newBed(t, "kinds", sim.ReuseLowest)
	b.operator("operator")
	b.agent()
	b.up("a", "b", "c", "d", "e", "f")
	b.complete("a pool for six pods")
	had := b.inAccount()

	b.api.Kubectl(append([]string{"delete", "--wait=false"}, kinds...)...)
	b.api.Eventually("the kinds are gone", func() error {
		if left := b.api.Kubectl("get", "crd", "--output=name"); strings.Contains(left, "enipool.io") {
			return errors.New(left)
		}
		return nil
	})
	b.bind("g", "h")
	b.start("g")
	b.end("a")
	b.remove("a")
	b.api.Eventually("the agent says what is missing", func() error {
		s, err := b.page()
		if err == nil && !slices.ContainsFunc(s.Causes, func(c status.Cause) bool { return strings.Contains(c.What, install) }) {
			err = fmt.Errorf("causes: %+v", s.Causes)
		}
		return err
	})
	b.api.Eventually("the operator says what is missing", b.says("operator", install))
	b.start("h")
	b.podsKeep()
	if now := b.inAccount(); !slices.Equal(now, had) {
		t.Errorf("the account had %v and has %v", had, now)
	}

	b.api.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/crds")
	b.established()
	b.up("i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s")
	b.complete("a pool for eighteen pods, on another ENI")
}
