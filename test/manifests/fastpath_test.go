package manifests

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The rights of the fast path are the agent's only where the component is used.
func TestTheFastPathComponentGivesTheAgentTheseRightsAndNoMore(t *testing.T) {
	before := one[*appsv1.DaemonSet](t)
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := yaml.YAMLToJSON([]byte(read(t, root+"/fast-path/agent.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = patch.Apply(text); err != nil {
		t.Fatal(err)
	}
	var after appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(text, &after); err != nil {
		t.Fatal(err)
	}
	was, is := before.Spec.Template.Spec.Containers[0], after.Spec.Template.Spec.Containers[0]
	if is.Name != "agent" {
		t.Fatalf("the patch changes container %s", is.Name)
	}
	more := slices.DeleteFunc(slices.Clone(is.SecurityContext.Capabilities.Add), func(c corev1.Capability) bool {
		return slices.Contains(was.SecurityContext.Capabilities.Add, c)
	})
	if diff := cmp.Diff([]corev1.Capability{"BPF", "PERFMON", "SYS_ADMIN"}, more); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	if mount := is.VolumeMounts[len(is.VolumeMounts)-1]; mount.MountPath != "/sys/fs/bpf" || mount.ReadOnly {
		t.Errorf("mount %+v", mount)
	}
	volumes := after.Spec.Template.Spec.Volumes
	if v := volumes[len(volumes)-1]; v.Name != "bpf" || v.HostPath == nil || v.HostPath.Path != "/sys/fs/bpf" {
		t.Errorf("volume %+v", v)
	}
	if d := readKustomization(t, root+"/fast-path"); len(d.Patches) != 1 || d.Patches[0].Path != "agent.yaml" {
		t.Errorf("the component has the patches %+v", d.Patches)
	}
}
