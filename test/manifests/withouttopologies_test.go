package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/operatorconf"
)

// Who does not apply the folder of topologies has nothing of them: no gate and no policy, no kind, no right to see claims, topologies or pods of the
// cluster (TestTheOperatorMayDoThisAndNothingElse), and an operator that has them turned off.
func TestWithoutItsFolderNothingOfTopologiesIsInstalled(t *testing.T) {
	for _, dir := range folders(t) {
		if filepath.Base(dir) == "topologies" {
			continue
		}
		k := readKustomization(t, dir)
		for _, name := range append(k.Resources, k.Components...) {
			if strings.Contains(name, "topologies") {
				t.Errorf("%s has %s", dir, name)
			}
			path := filepath.Join(dir, name)
			if is, err := os.Stat(path); err != nil || is.IsDir() {
				continue // a folder has a kustomization of its own
			}
			text := read(t, path)
			for _, word := range []string{"MutatingAdmissionPolicy", "podsubnettopologies", "addressclaims", "schedulingGates", "enipool.io/topology"} {
				if strings.Contains(text, word) && filepath.Base(dir) != "scheduling" { // whose policy counts the pods of a node, gated or not
					t.Errorf("%s has %s", path, word)
				}
			}
		}
	}
	conf, err := operatorconf.Parse([]byte(read(t, "../../conf/operator.yaml")))
	if err != nil || conf.Topologies {
		t.Errorf("topologies are %v in conf/operator.yaml, %v", conf.Topologies, err)
	}
}
