package configfile

import (
	"fmt"
	"os"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/nodecache"
)

// LeaveWord leaves beside the node cache why no agent starts with the file, for who looks there: the errors of ADDs and
// `pool show` tell it. The next agent that starts says something else in its place. An agent that runs
// keeps its own word, and of a file that can't be read it is not known which node cache it is of.
func LeaveWord(path string, wrong error, now time.Time) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	cache := nodecache.Cache{Path: agentconf.CacheOf(text)}
	return cache.WithoutAgent(func() error {
		return cache.SetWhy(fmt.Sprintf("enipool-agent (process %d) did not start at %s: %s", os.Getpid(), now.UTC().Format(time.RFC3339), keys.Brief(wrong)))
	})
}
