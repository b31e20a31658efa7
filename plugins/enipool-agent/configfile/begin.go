// Package configfile is about the file that the agent is configured with: it reads and watches it,
// keeps what is in force for a start at which the file is wrong, and passes changes on.
package configfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/clouds"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/lastgood"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/plugins/enipool-agent/cli"
	"github.com/enipool/enipool/plugins/enipool-agent/cluster"
)

// Flags are what the command line says of a run.
type Flags struct {
	Config string // the path of the file
	Once   bool   // make the node right once, then end
	DryRun bool   // change nothing
}

// Begun is what an agent starts with.
type Begun struct {
	Source
	Reload *Reload
	Client cloud.Cloud
}

// BeginOrLastGood reads the file. Where the agent could not start with that, and is to keep the node,
// it goes on with what was in force last, and says so: a wrong file that is rolled out ends
// all agents of a cluster else.
func BeginOrLastGood(line Flags, stderr io.Writer) (Begun, error) {
	found, wrong := Read(line.Config)
	if wrong == nil {
		start, err := found.openWith(!line.Once, stderr)
		if err == nil {
			return start, nil
		}
		wrong = err
	}
	if line.Once || line.DryRun { // somebody waits for the answer
		return Begun{}, wrong
	}
	good, kept, err := ReadLastGood(line.Config, found.Text, func(path string) string { return path })
	if err == nil {
		var start Begun
		if start, err = good.openWith(true, stderr); err == nil {
			start.file = found.file
			k := keepingFor(good.Conf.State, kept.Of, good.Text)
			k.at = kept
			start.Reload.startFromKept(wrong, k)
			return start, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Begun{}, wrong
	}
	if uid := os.Geteuid(); uid != 0 && errors.Is(err, fs.ErrPermission) { // what is kept is for root alone
		return Begun{}, cli.NeedsRoot(uid, wrong, err)
	}
	return Begun{}, fmt.Errorf("%w\nthe configuration that was in force last can't be used either: %v", wrong, err)
}

// openWith makes all of the source that needs no more than that; joins says whether the agent joins
// the cluster of the node, if there is one.
func (s Source) openWith(joins bool, stderr io.Writer) (Begun, error) {
	reloads := newReload(s.Conf, stderr)
	reloads.warnOfKeys(s.Conf)
	client, err := fitToNode(&s.Conf, joins, reloads.Log)
	return Begun{s, reloads, client}, err
}

// fitToNode makes the configuration the node's, and tells why no agent could start with it. It
// calls neither the cloud nor the API server.
func fitToNode(conf *agentconf.Config, joins bool, log *slog.Logger) (cloud.Cloud, error) {
	if err := node.ChooseFirewall(&conf.Settings, conf.AnyFirewall); err != nil {
		return nil, &cli.NodeError{Err: err}
	}
	client, err := clouds.Open(*conf, log)
	if err == nil && conf.Cloud.Provider == agentconf.Operator {
		switch {
		case !joins:
			err = errors.New("cloud.provider: the operator plans for this node, and nothing can be done once for it: kubectl describe nodenetwork has what it was asked for and what it answers")
		case !cluster.Reachable(conf.Kubernetes):
			err = errors.New("cloud.provider: with an operator the agent needs the API server of the cluster; the keys kubernetes.enabled and kubernetes.kubeconfig say where that is")
		}
	}
	if err == nil && joins {
		_, err = cluster.Find(conf.Kubernetes)
	}
	return client, err
}

// ReadLastGood returns what was in force last, by a file that is not right, and where it is
// kept; on says where a path of the node is. It fails with fs.ErrNotExist where nothing is kept.
func ReadLastGood(path string, text []byte, on func(path string) string) (found Source, kept lastgood.File, err error) {
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
