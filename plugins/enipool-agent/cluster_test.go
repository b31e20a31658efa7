package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

func TestAClusterIsJoinedWhereThereIsOneOrSomebodySaysSo(t *testing.T) {
	mounted := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(mounted, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const none = "/nowhere/token"
	for _, tt := range []struct {
		name       string
		enabled    agentconf.Switch
		kubeconfig string
		host       string
		account    string
		want       bool
	}{
		{"a plain node", agentconf.Auto, "", "", none, false},
		{"a pod with an account", agentconf.Auto, "", "10.0.0.1", mounted, true},
		{"a pod without an account", agentconf.Auto, "", "10.0.0.1", none, false},
		{"a token that was left behind", agentconf.Auto, "", "", mounted, false},
		{"a kubeconfig", agentconf.Auto, "/etc/kubernetes/agent.conf", "", none, true},
		{"switched on", agentconf.On, "", "", none, true},
		{"switched off in a pod", agentconf.Off, "", "10.0.0.1", mounted, false},
		{"switched off with a kubeconfig", agentconf.Off, "/etc/kubernetes/agent.conf", "", none, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", tt.host)
			if got := inCluster(agentconf.Kubernetes{Enabled: tt.enabled, Kubeconfig: tt.kubeconfig}, tt.account); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestTheNodesPodsAreWhatTheFileTheClusterOrTheKubeletSays(t *testing.T) {
	conf := agentconf.Default()
	conf.MaxPods.KubeletConfig = filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(conf.MaxPods.KubeletConfig, []byte("maxPods: 50"), 0o600); err != nil {
		t.Fatal(err)
	}
	limit := newReload(conf, io.Discard).limit
	expect := func(want int, from string) {
		t.Helper()
		if n, source := limit.current(); n != want || source != from {
			t.Errorf("%d from %q, want %d from %q", n, source, want, from)
		}
	}
	expect(50, conf.MaxPods.KubeletConfig)
	told, known := 0, false
	limit.cluster = func() (int, bool) { return told, known }
	expect(50, conf.MaxPods.KubeletConfig)
	known = true
	expect(50, conf.MaxPods.KubeletConfig) // a Node that allows none is not one yet
	told = 30
	expect(30, "allocatable of the Node")
	limit.setConf(agentconf.MaxPods{Fixed: 7})
	expect(7, "maxPods of the agent's configuration")
}

func TestTwoReasonsToWakeAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		one, other := make(chan struct{}, 1), make(chan struct{}, 1)
		wake := mergeWakes(ctx, one, other)
		for _, c := range []chan struct{}{one, other} {
			c <- struct{}{}
			synctest.Wait()
			<-wake
		}
		one <- struct{}{}
		other <- struct{}{}
		synctest.Wait()
		<-wake
		select {
		case <-wake:
			t.Error("woken twice")
		default:
		}
		stop()
		synctest.Wait()
	})
}
