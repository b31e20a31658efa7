package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/clouds"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/lastgood"
	"github.com/enipool/enipool/pkg/node"
)

// begun is what an agent starts with.
type begun struct {
	source
	reload *reload
	client cloud.Cloud
}

// beginOrLastGood reads the file. Where the agent could not start with that, and is to keep the node,
// it goes on with what was in force last, and says so: a wrong file that is rolled out ends
// all agents of a cluster else.
func beginOrLastGood(line flags, stderr io.Writer) (begun, error) {
	found, wrong := readSource(line.config)
	if wrong == nil {
		start, err := found.openWith(!line.once, stderr)
		if err == nil {
			return start, nil
		}
		wrong = err
	}
	if line.once || line.dryRun { // somebody waits for the answer
		return begun{}, wrong
	}
	good, kept, err := readLastGood(line.config, found.text, func(path string) string { return path })
	if err == nil {
		var start begun
		if start, err = good.openWith(true, stderr); err == nil {
			start.file = found.file
			k := keepingFor(good.conf.State, kept.Of, good.text)
			k.at = kept
			start.reload.startFromKept(wrong, k)
			return start, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return begun{}, wrong
	}
	return begun{}, fmt.Errorf("%w\nthe configuration that was in force last can't be used either: %v", wrong, err)
}

// openWith makes all of the source that needs no more than that.
func (s source) openWith(cluster bool, stderr io.Writer) (begun, error) {
	reloads := newReload(s.conf, stderr)
	reloads.warnOfKeys(s.conf)
	client, err := fitToNode(&s.conf, cluster, reloads.log)
	return begun{s, reloads, client}, err
}

// fitToNode makes the configuration the node's, and tells why no agent could start with it. It
// calls neither the cloud nor the API server.
func fitToNode(conf *agentconf.Config, cluster bool, log *slog.Logger) (cloud.Cloud, error) {
	if err := node.Settle(&conf.Settings, conf.AnyFirewall); err != nil {
		return nil, &nodeError{err}
	}
	client, err := clouds.Open(*conf, log)
	if err == nil && cluster {
		_, err = findCluster(conf.Kubernetes)
	}
	return client, err
}

// readLastGood returns what was in force last, by a file that is not right, and where it is
// kept; on says where a path of the node is. It fails with fs.ErrNotExist where nothing is kept.
func readLastGood(path string, text []byte, on func(path string) string) (found source, kept lastgood.File, err error) {
	of, failed := filepath.Abs(path)
	if failed != nil {
		return found, kept, failed
	}
	// The key state may be what is wrong in the file, or the file may be none any more.
	for _, state := range agentconf.StatesOf(text) {
		for _, f := range lastgood.PairFor(state, of).ByAge() {
			f.Path = on(f.Path)
			good, err := f.Read()
			if err == nil {
				found, err = parseSource(f.Path, good)
			}
			if err == nil {
				return found, f, nil
			}
			if failed == nil || errors.Is(failed, fs.ErrNotExist) {
				failed = err
			}
		}
	}
	return found, kept, failed
}
