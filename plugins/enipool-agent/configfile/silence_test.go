package configfile

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

func TestTheClusterIsTakenOffOnceWhenItIsSwitchedOffAndToldAgainWhenOn(t *testing.T) {
	var told strings.Builder
	var calls []bool
	s := &silencer{node: "node-7", withhold: func(is bool) { calls = append(calls, is) }}
	log := slog.New(slog.NewTextHandler(&told, nil))
	for _, silent := range []bool{false, true, true, false, false} {
		s.follow(silent, log)
	}
	if want := []bool{true, false}; !slices.Equal(calls, want) {
		t.Errorf("the cluster is to know nothing: %v, want %v", calls, want)
	}
	if got := told.String(); strings.Count(got, "level=") != 1 || !strings.Contains(got, "kubectl patch node node-7") {
		t.Errorf("it said %q", got)
	}
	var none *silencer
	none.follow(true, log) // on a node without a cluster there is nothing to do
}

func TestAReloadSwitchesTheClusterOff(t *testing.T) {
	conf := agentconf.Default()
	r := newReload(conf, io.Discard)
	r.NewFastPath(conf)
	silent := false
	r.cluster = &silencer{withhold: func(is bool) { silent = is }}
	conf.Kubernetes.Enabled = agentconf.Off
	if r.applyConfig(conf); !silent {
		t.Error("the cluster is told of the node as before")
	}
}
