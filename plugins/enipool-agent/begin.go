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

// begin reads the file. Where the agent could not start with that, and is to keep the node,
// it goes on with what was in force last, and says so: a wrong file that is rolled out ends
// all agents of a cluster else.
func begin(f flags, stderr io.Writer) (begun, error) {
	s, wrong := readSource(f.config)
	if wrong == nil {
		b, err := s.begin(!f.once, stderr)
		if err == nil {
			return b, nil
		}
		wrong = err
	}
	if f.once || f.dryRun { // somebody waits for the answer
		return begun{}, wrong
	}
	good, kept, err := readLastGood(f.config, s.text, func(path string) string { return path })
	if err == nil {
		var b begun
		if b, err = good.begin(true, stderr); err == nil {
			b.file = s.file
			k := keepingFor(good.conf.State, kept.Of, good.text)
			k.at = kept
			b.reload.start(wrong, k)
			return b, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return begun{}, wrong
	}
	return begun{}, fmt.Errorf("%w\nthe configuration that was in force last can't be used either: %v", wrong, err)
}

// begin makes all of the source that needs no more than that.
func (s source) begin(cluster bool, stderr io.Writer) (begun, error) {
	r := newReload(s.conf, stderr)
	r.warn(s.conf)
	client, err := fit(&s.conf, cluster, r.log)
	return begun{s, r, client}, err
}

// fit makes the configuration the node's, and tells why no agent could start with it. It
// calls neither the cloud nor the API server.
func fit(conf *agentconf.Config, cluster bool, log *slog.Logger) (cloud.Cloud, error) {
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
func readLastGood(path string, text []byte, on func(path string) string) (s source, kept lastgood.File, err error) {
	of, failed := filepath.Abs(path)
	if failed != nil {
		return s, kept, failed
	}
	// The key state may be what is wrong in the file, or the file may be none any more.
	for _, state := range agentconf.StatesOf(text) {
		for _, f := range lastgood.PairFor(state, of).ByAge() {
			f.Path = on(f.Path)
			good, err := f.Read()
			if err == nil {
				s, err = parseSource(f.Path, good)
			}
			if err == nil {
				return s, f, nil
			}
			if failed == nil || errors.Is(failed, fs.ErrNotExist) {
				failed = err
			}
		}
	}
	return s, kept, failed
}
