package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Somebody clears the folder of the node cache under the agent. It hears of that, with no
// comparison due for an hour: pods go on, the next ones are heard when they wait, and no
// second agent starts beside it.
func TestAnAgentWhoseFolderIsReplacedGoesOnInTheNewOneAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "replaced", limits: tiny})
	s.configure("pool.batch: 2", "pool.minPool: 2", "resync: 1h", "cloud.describe: 1h")
	agent := s.start()
	s.ready()
	s.add("a")
	owners, err := s.owners()
	s.must(err)
	folder := filepath.Dir(s.cache.Path)
	for i, replace := range []func(){
		func() { _ = os.RemoveAll(folder) }, // which fails where the agent is faster: it puts files back meanwhile
		func() { _ = os.RemoveAll(folder); _ = os.Mkdir(folder, 0o700) },
		func() { s.must(os.Rename(folder, s.dir+"/old")) },
	} {
		replace()
		s.eventually("the owners of before", func() error {
			have, err := s.owners()
			if err == nil && !maps.Equal(have, owners) {
				err = fmt.Errorf("%v, want %v", have, owners)
			}
			return err
		})
		agent.says("files of the agent were removed or replaced by others.*" + folder)
		s.ready()
		// More than are free: the agent must hear that they wait.
		var ids []string
		for n := range 4 {
			ids = append(ids, fmt.Sprintf("round%d-%d", i, n))
		}
		s.add(ids...)
		if said, code := s.once("--once"); code != 1 || !strings.Contains(said, "another agent keeps this node") {
			t.Errorf("a second agent ends with %d: %s", code, said)
		}
		s.del(ids...)
	}
}
