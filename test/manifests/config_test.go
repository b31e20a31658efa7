package manifests

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/install"
	appsv1 "k8s.io/api/apps/v1"
)

func overlays(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(root + "/overlays/*")
	if err != nil || len(list) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	return list
}

func TestTheAgentReadsTheConfigurationOfEachOverlay(t *testing.T) {
	port := pod(t).Containers[0].Ports[0].ContainerPort
	list, err := install.ParseConflist([]byte(read(t, root+"/base/10-enipool.conflist")))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range overlays(t) {
		text := read(t, dir+"/agent.yaml")
		conf, err := agentconf.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if conf.Cache != list.CachePath {
			t.Errorf("%s: the agent keeps %s and the plugin reads %s", dir, conf.Cache, list.CachePath)
		}
		if at, err := netip.ParseAddrPort(conf.Listen); err != nil || !at.Addr().IsLoopback() || int32(at.Port()) != port {
			t.Errorf("%s: listens at %s, and the probes ask port %d of loopback", dir, conf.Listen, port)
		}
		if conf.Kubernetes.Enabled != agentconf.On {
			t.Errorf("%s: without the cluster", dir)
		}
		if !strings.HasPrefix(text, "listen: ") {
			t.Errorf("%s: the first line, which monitoring replaces, is not listen", dir)
		}
	}
}

// A ConfigMap whose name has a hash goes with a change, and pods that still mount it may have to start again until the new ones are ready: what prunes
// has to wait for that.
func TestAConfigMapWithAHashIsPrunedLast(t *testing.T) {
	for _, dir := range folders(t) {
		k := readKustomization(t, dir)
		for _, g := range k.ConfigMapGenerator {
			if k.GeneratorOptions["disableNameSuffixHash"] == true || g.Options["disableNameSuffixHash"] == true || g.Behavior == "merge" || g.Behavior == "replace" {
				continue
			}
			annotations, _ := g.Options["annotations"].(map[string]any)
			if annotations["argocd.argoproj.io/sync-options"] != "PruneLast=true" {
				t.Errorf("%s: %s: %v", dir, g.Name, g.Options)
			}
		}
	}
}

func TestTheConflistIsTheOneThatInstallBringsAlong(t *testing.T) {
	if read(t, root+"/base/10-enipool.conflist") != string(install.DefaultConflist()) {
		t.Error("conf/kubernetes/base/10-enipool.conflist is another one than pkg/install's; copy the latter over it")
	}
}

// What the conflist calls, and loopback, which containerd calls beside it.
func TestTheImageHasAllThatTheConflistCalls(t *testing.T) {
	list, err := install.ParseConflist(install.DefaultConflist())
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "../../conf/image/Containerfile")
	for _, name := range append(slices.Clone(list.Plugins), "loopback", "enipool-agent", "enipoolctl") {
		if !strings.Contains(text, "/"+name+" ") {
			t.Errorf("conf/image/Containerfile does not copy %s", name)
		}
	}
}

// What containers call, those of the uninstallation too, is what the programs know.
func TestTheProgramsKnowWhatTheirContainersSay(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../../plugins/enipool-agent", "../../plugins/enipoolctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	off := uninstallation(t).Spec.Template.Spec
	for _, c := range slices.Concat(containers(t), off.InitContainers, off.Containers) {
		call := append(slices.Clone(c.Command), c.Args...)
		if len(c.Command) == 0 {
			call = append([]string{"/bin/enipool-agent"}, c.Args...)
		}
		if out, err := exec.Command(filepath.Join(bin, filepath.Base(call[0])), append(call[1:], "--help")...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.Name, err, out)
		}
	}
}

// uninstallation is the patch of the DaemonSet.
func uninstallation(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	path := root + "/uninstall/daemonset.yaml"
	return decode(t, path, read(t, path))[0].(*appsv1.DaemonSet)
}

// A patch of a container that has another name would add one.
func TestUninstallingTakesThePlaceOfTheAgent(t *testing.T) {
	want, got := one[*appsv1.DaemonSet](t), uninstallation(t)
	if want.Name != got.Name || want.Namespace != got.Namespace {
		t.Errorf("%s/%s, want %s/%s", got.Namespace, got.Name, want.Namespace, want.Name)
	}
	off := got.Spec.Template.Spec
	for i, c := range slices.Concat(off.InitContainers, off.Containers) {
		if c.Name != containers(t)[i].Name {
			t.Errorf("container %s, want %s", c.Name, containers(t)[i].Name)
		}
	}
	made := build(t, root+"/uninstall")
	for _, o := range decode(t, "uninstall", made) {
		if d, ok := o.(*appsv1.DaemonSet); ok {
			agent := d.Spec.Template.Spec.Containers[0]
			if len(d.Spec.Template.Spec.Containers) != 1 || agent.LivenessProbe != nil || agent.ReadinessProbe != nil || len(agent.SecurityContext.Capabilities.Add) > 0 {
				t.Errorf("%+v", agent)
			}
		}
	}
}
