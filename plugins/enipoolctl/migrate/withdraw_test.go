package migrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster/clustertest"
)

// Objects are released once nobody leads and no operator called last; others keep what others wait for.
func TestObjectsWaitForNoOperatorThatIsGone(t *testing.T) {
	s := clustertest.Start(t)
	withdraw := func(args ...string) (int, string) {
		code, out, errs := run(append([]string{"migrate", "withdraw", "--kubeconfig", s.Kubeconfig}, args...)...)
		return code, out + errs
	}
	object := func(name string, mode crd.Mode) {
		n := network(crd.Self, mode)
		n.Name, n.ResourceVersion, n.Finalizers = name, "7", []string{operator.Finalizer, "other.io/keep"}
		s.Put(networks+name, n)
	}
	object("n1", crd.Self)
	object("n2", crd.Leaving)

	s.Put(leases, lease(0))
	if code, text := withdraw(); code != 2 || !strings.Contains(text, "n9_abc leads; take the operators off first") || len(s.Patched()) > 0 {
		t.Errorf("while one leads: exit %d, %s", code, text)
	}
	s.Put(leases, lease(time.Hour))
	if code, text := withdraw(); code != 2 || !strings.Contains(text, "called the cloud last for n2") || len(s.Patched()) > 0 {
		t.Errorf("a node is not given back: exit %d, %s", code, text)
	}
	object("n2", crd.Self)
	if code, text := withdraw("--dry-run"); code != 0 || !strings.Contains(text, "2 of 2") || len(s.Patched()) > 0 {
		t.Errorf("a dry run: exit %d, %s", code, text)
	}
	object("n2", crd.Operator)
	if code, text := withdraw("--force"); code != 0 || !strings.Contains(text, "2 of 2 NodeNetworks wait for no operator any more") {
		t.Errorf("by force: exit %d, %s", code, text)
	}
	patched := s.Patched()
	slices.Sort(patched)
	want := `{"metadata":{"finalizers":["other.io/keep"],"resourceVersion":"7"}}`
	if !slices.Equal(patched, []string{networks + "n1 " + want, networks + "n2 " + want}) {
		t.Errorf("patched: %v", patched)
	}
}

// A claim waits for an operator to take its address from its ENI.
func TestClaimsWaitForNoOperatorThatIsGone(t *testing.T) {
	const claimed = "/apis/enipool.io/v1alpha1/addressclaims/"
	s := clustertest.Start(t)
	s.Put(leases, lease(time.Hour))
	for name, finalizers := range map[string][]string{"10.0.0.1": {claims.Finalizer, "other.io/keep"}, "10.0.0.2": nil} {
		s.Put(claimed+name, &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7", Finalizers: finalizers}})
	}
	for _, tt := range []struct {
		args, says, patch string
	}{
		{"--dry-run", "0 of 0 NodeNetworks and 1 of 2 AddressClaims would no longer wait", ""},
		{"--force", "0 of 0 NodeNetworks and 1 of 2 AddressClaims wait for no operator any more", claimed + `10.0.0.1 {"metadata":{"finalizers":["other.io/keep"],"resourceVersion":"7"}}`},
	} {
		code, out, errs := run("migrate", "withdraw", "--kubeconfig", s.Kubeconfig, tt.args)
		if got := strings.Join(s.Patched(), ""); code != 0 || !strings.Contains(out, tt.says) || got != tt.patch {
			t.Errorf("%s: exit %d, %s%s, patched %s", tt.args, code, out, errs, got)
		}
	}
}
