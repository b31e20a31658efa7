package manifests

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/test/kube"
)

// A tool takes over what another has applied, as where people change from kubectl to Argo CD or Flux, or from one of these to the other.
// Neither says anything else than the other, so there is no conflict, and a comparison shows nothing: not what the API server added either.
func TestAnotherFieldManagerAppliesWithoutConflict(t *testing.T) {
	c := start(t, kube.Options{})
	c.Apply(operatorDefinitions)
	for _, dir := range []string{root + "/crds", operatorWithPages(t), everything(t, root+"/overlays/aws")} {
		text := filepath.Join(t.TempDir(), "all.yaml")
		c.must(os.WriteFile(text, []byte(build(t, dir)), 0o600))
		apply := func(manager string) error {
			_, err := c.TryKubectl("apply", "--server-side", "--field-manager="+manager, "--filename="+text)
			return err
		}
		// Kinds are served a moment after they are there.
		c.Eventually(dir, func() error { return apply("first") })
		if err := errors.Join(apply("second"), apply("first")); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		for _, flags := range [][]string{{"--server-side", "--field-manager=second"}, {}} {
			if shown, err := c.TryKubectl(append([]string{"diff", "--filename=" + text}, flags...)...); err != nil {
				t.Errorf("%s: what was applied differs from what is there: %v\n%s", dir, err, shown)
			}
		}
	}
}
