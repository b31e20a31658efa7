package manifests

import (
	"errors"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/kube"
)

// Who may see a whole cluster may see our kinds, and no more: `enipoolctl cluster` reads what they tell. In one namespace nobody has a right to kinds of none.
func TestWhoMaySeeTheClusterMaySeeOurKinds(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	c.install(root + "/crds")
	c.install(root + "/topologies")
	c.Kubectl("create", "clusterrolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	c.Kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=developer", "--namespace=default")
	may := func(who, verb, kind string) bool {
		_, err := c.TryKubectl("auth", "can-i", verb, kind+".enipool.io", "--as="+who)
		return err == nil
	}
	for _, kind := range []string{"nodenetworks", "subnets", "podsubnettopologies", "addressclaims"} {
		c.Eventually(kind+" can be seen", func() error {
			if !may("viewer", "list", kind) || !may("viewer", "watch", kind) || !may("viewer", "get", kind) {
				return errors.New("the viewer may not")
			}
			return nil
		})
		for _, verb := range []string{"create", "delete", "patch", "update"} {
			if may("viewer", verb, kind) {
				t.Errorf("the viewer may %s %s", verb, kind)
			}
		}
		if out, err := c.TryKubectl("get", kind+".enipool.io", "--as=developer"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("who may see one namespace lists %s: %s, %v", kind, out, err)
		}
	}
}
