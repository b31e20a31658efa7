package kubeletplugin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/enipool/enipool/pkg/devices"
)

// kubelet is one that has plugins.
type kubelet struct {
	t      *testing.T
	folder string
	log    bytes.Buffer
}

func newKubelet(t *testing.T) *kubelet {
	t.Helper()
	folder, err := os.MkdirTemp("", "kubelet") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Mkdir(filepath.Join(folder, "plugins_registry"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &kubelet{t: t, folder: folder}
}

// errGone is what the API server says of a claim that is gone.
var errGone = errors.New("no such claim")

// plugin returns a plugin for the kubelet. The scheduler has allocated to each claim what its name says.
func (k *kubelet) plugin(on bool) *Plugin {
	lookup := func(_ context.Context, c devices.Claim) (devices.Claim, error) {
		if c.Name == "gone" {
			return c, errGone
		}
		c.Devices = []string{c.Name}
		return c, nil
	}
	return New(Options{Driver: "enipool.io", Folder: k.folder, On: on, Lookup: lookup, Log: slog.New(slog.NewTextHandler(&k.log, nil))})
}

// start runs the plugin until it is stopped, or by itself comes to an end.
func (k *kubelet) start(p *Plugin) (stop func(), ended <-chan struct{}) {
	ctx, cancel := context.WithCancel(k.t.Context())
	end := make(chan struct{})
	go func() { defer close(end); p.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-end })
	k.t.Cleanup(stop)
	return stop, end
}

// connect dials one of the plugin's sockets, once it is there.
func (k *kubelet) connect(path string) *grpc.ClientConn {
	k.t.Helper()
	c, err := grpc.NewClient("unix:"+filepath.Join(k.folder, path), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = c.Close() })
	return c
}

// register does what a kubelet does that has found the socket, and returns how the plugin is called.
func (k *kubelet) register() dra.DRAPluginClient {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	c := registration.NewRegistrationClient(k.connect("plugins_registry/enipool.io-reg.sock"))
	info, err := c.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		k.t.Fatal(err)
	}
	if want := filepath.Join(k.folder, "plugins/enipool.io/dra.sock"); info.Type != "DRAPlugin" || info.Name != "enipool.io" || info.Endpoint != want || info.SupportedVersions[0] != "v1.DRAPlugin" {
		k.t.Errorf("the plugin is %v", info)
	}
	if _, err := c.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		k.t.Fatal(err)
	}
	return dra.NewDRAPluginClient(k.connect("plugins/enipool.io/dra.sock"))
}

// prepare returns the error of each claim, whose UID is the name with "uid-" before it.
func (k *kubelet) prepare(c dra.DRAPluginClient, names ...string) map[string]string {
	k.t.Helper()
	var asked dra.NodePrepareResourcesRequest
	for _, name := range names {
		asked.Claims = append(asked.Claims, &dra.Claim{Namespace: "ns", Name: name, Uid: "uid-" + name})
	}
	answer, err := c.NodePrepareResources(k.t.Context(), &asked)
	if err != nil {
		k.t.Fatal(err)
	}
	said := map[string]string{}
	for uid, is := range answer.Claims {
		said[uid] = is.Error
	}
	return said
}

func (k *kubelet) unprepare(c dra.DRAPluginClient, name string) {
	k.t.Helper()
	answer, err := c.NodeUnprepareResources(k.t.Context(), &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{{Namespace: "ns", Name: name, Uid: "uid-" + name}}})
	if err != nil {
		k.t.Fatal(err)
	}
	if is := answer.Claims["uid-"+name]; is == nil || is.Error != "" {
		k.t.Errorf("unprepare %s: %v", name, is)
	}
}

// has compares what is prepared.
func (k *kubelet) has(p *Plugin, want ...string) {
	k.t.Helper()
	var claims []devices.Claim
	for _, name := range want {
		claims = append(claims, devices.Claim{UID: "uid-" + name, Namespace: "ns", Name: name, Devices: []string{name}})
	}
	if diff := cmp.Diff(claims, p.Claims()); diff != "" && len(claims)+len(p.Claims()) > 0 {
		k.t.Errorf("prepared (-want +got):\n%s", diff)
	}
}

func TestClaimsStayPreparedOverTheEndOfTheAgent(t *testing.T) {
	k := newKubelet(t)
	p := k.plugin(true)
	stop, _ := k.start(p)
	c := k.register()
	if !p.Registered() {
		t.Error("the plugin does not know that it is registered")
	}
	said := k.prepare(c, "eni0", "eni1", "gone")
	if said["uid-eni0"] != "" || said["uid-eni1"] != "" || !strings.Contains(said["uid-gone"], errGone.Error()) {
		t.Errorf("prepared: %v", said)
	}
	k.prepare(c, "eni0") // the kubelet has started again
	k.unprepare(c, "eni1")
	k.unprepare(c, "unknown")
	k.has(p, "eni0")
	stop()
	if p.Registered() {
		t.Error("the plugin that ended is registered")
	}

	// As after kill -9 the sockets are still there; what is prepared the next agent knows.
	for _, path := range []string{"plugins_registry/enipool.io-reg.sock", "plugins/enipool.io/dra.sock"} {
		if err := os.WriteFile(filepath.Join(k.folder, path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p = k.plugin(true)
	k.has(p, "eni0")
	k.start(p)
	k.unprepare(k.register(), "eni0")
	k.has(p)
}

func TestAPluginThatIsOffServesWhatIsLeft(t *testing.T) {
	k := newKubelet(t)
	if p := k.plugin(false); p.Left() {
		t.Error("something is left on a node that never had it")
	} else if _, ended := k.start(p); !isClosed(t, ended) {
		t.Error("it serves")
	}
	stop, _ := k.start(k.plugin(true))
	k.prepare(k.register(), "eni0")
	stop()

	p := k.plugin(false)
	if !p.Left() {
		t.Error("nothing is left")
	}
	_, ended := k.start(p)
	c := k.register()
	if said := k.prepare(c, "eni0", "new"); said["uid-eni0"] != "" || !strings.Contains(said["uid-new"], "kubernetes.dra") {
		t.Errorf("prepared: %v", said)
	}
	k.unprepare(c, "eni0")
	isClosed(t, ended)
	left, err := os.ReadDir(filepath.Join(k.folder, "plugins/enipool.io"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if k.plugin(false).Left() {
		t.Error("something is left when all is done")
	}
}

// isClosed waits for the end of a plugin.
func isClosed(t *testing.T, ended <-chan struct{}) bool {
	t.Helper()
	select {
	case <-ended:
		return true
	case <-t.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	return false
}

func TestAFileThatCannotBeReadIsNone(t *testing.T) {
	k := newKubelet(t)
	if err := os.MkdirAll(filepath.Join(k.folder, "plugins/enipool.io"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.folder, "plugins/enipool.io/claims.json"), []byte(`{"claims":[{`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := k.plugin(true)
	k.has(p)
	if !strings.Contains(k.log.String(), "the claims that were prepared before are not known") {
		t.Errorf("the log has: %s", k.log.String())
	}
	k.start(p)
	k.prepare(k.register(), "eni0")
	k.has(k.plugin(true), "eni0")
}

func TestANodeWithoutTheKubeletsFolderIsTold(t *testing.T) {
	k := newKubelet(t)
	if err := os.Remove(filepath.Join(k.folder, "plugins_registry")); err != nil {
		t.Fatal(err)
	}
	err := k.plugin(true).prepareFolder()
	if err == nil || !strings.Contains(err.Error(), "conf/kubernetes/dra mounts it") {
		t.Errorf("%v", err)
	}
}
