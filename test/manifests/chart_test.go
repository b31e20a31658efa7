package manifests

import (
	"flag"
	"log/slog"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/strvals"
)

var update = flag.Bool("update", false, "write what the schema of the chart's values takes over from conf")

// helm is where the chart is, and values for each overlay.
const helm = "../../conf/helm"

// values are those of a file of conf/helm, with others put in as --set does.
func values(t *testing.T, file string, set ...string) map[string]any {
	t.Helper()
	v, err := common.ReadValuesFile(helm + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set {
		if err := strvals.ParseInto(s, v); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	was := slog.Default()
	defer slog.SetDefault(was)
	slog.SetDefault(slog.New(slog.DiscardHandler)) // it tells of the link, which is meant
	c, err := loader.Load(helm + "/enipool")
	if err != nil {
		t.Fatal(err)
	}
	return c.(*chart.Chart)
}

// render makes what `helm template` prints for a namespace and a release of Kubernetes.
func render(t *testing.T, namespace, kubernetes string, v map[string]any) (string, error) {
	t.Helper()
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy, install.KubeVersion = action.DryRunClient, version
	install.ReleaseName, install.Namespace = "enipool", namespace
	made, err := install.Run(loadChart(t), v)
	if err != nil {
		return "", err
	}
	return made.(*release.Release).Manifest, nil
}

// newest is a Kubernetes that has all that the chart can ask for.
const newest = "v1.36.0"

func TestLintHasNothingToSayOfTheChart(t *testing.T) {
	for _, file := range []string{"aws.yaml", "baidu.yaml", "sim.yaml"} {
		lint := action.NewLint()
		lint.Strict, lint.Namespace = true, "kube-system"
		got := lint.Run([]string{helm + "/enipool"}, values(t, file))
		for _, err := range got.Errors {
			t.Errorf("%s: %v", file, err)
		}
		for _, m := range got.Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", file, m)
			}
		}
	}
}

// A value that is wrong is refused with its place, before anything is installed.
func TestWrongValuesAreRefusedByName(t *testing.T) {
	for _, tt := range []struct{ file, set, want string }{
		{"enipool/values.yaml", "", "at '/agent': missing property 'cloud'"},
		{"sim.yaml", "agent.cloud.provider=null", "at '/agent/cloud/provider': got null, want string"},
		{"sim.yaml", "agent.cloud.provider=gcp", "at '/agent/cloud/provider': value must be one of"},
		{"sim.yaml", "agent.pool.bacth=16", "at '/agent/pool': additional properties 'bacth' not allowed"},
		{"sim.yaml", "agent.pool.batch=0", "at '/agent/pool/batch': minimum: got 0, want 1"},
		{"sim.yaml", "agent.vpcCIDRs={10.0.0.0}", "at '/agent/vpcCIDRs/0': '10.0.0.0' does not match pattern"},
		{"sim.yaml", "agent.vpcCIDRs={10.0.0.0/16,10.256.0.0/16}", "at '/agent/vpcCIDRs/1': '10.256.0.0/16' does not match pattern"},
		{"sim.yaml", "agent.vpcCIDRs={10.0.0.0/33}", "at '/agent/vpcCIDRs/0'"},
		{"sim.yaml", "agent.vpcCIDRs={10.0.1.0/16}", "at '/agent/vpcCIDRs/0'"}, // host bits
		{"sim.yaml", "agent.vpcCIDRs={2001:db8::/129}", "at '/agent/vpcCIDRs/0'"},
		{"sim.yaml", "agent.coolDown=30", "at '/agent/coolDown'"},
		{"sim.yaml", "agent.fastPath=false", "at '/agent/fastPath': value must be one of 'auto', 'off'"}, // YAML's word for a plain off
		{"sim.yaml", "nodeselector.pool=a", "at '': additional properties 'nodeselector' not allowed"},
		{"sim.yaml", "scheduling=true", "at '/scheduling': got boolean, want object"},
		{"sim.yaml", "operator.enabled=true", "at '/operator/config': missing property 'cloud'"},
		{"sim.yaml", "operator.config.shares=3", "at '/operator/config': additional properties 'shares' not allowed"},
		{"sim.yaml", "topologies.enabled=true", "topologies.enabled needs operator.enabled"},
	} {
		set := strings.Fields(tt.set)
		if _, err := render(t, "kube-system", newest, values(t, tt.file, set...)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v\nwant %q", tt.file, tt.set, err, tt.want)
		}
	}
}

// What a cluster is too old for is refused, not left out.
func TestTheChartNamesTheKubernetesThatItNeeds(t *testing.T) {
	cloud := []string{"operator.enabled=true", "operator.config.cloud.provider=sim", "operator.config.cloud.cluster=blue"}
	for _, tt := range []struct {
		kubernetes string
		set        []string
		want       string
	}{
		{"v1.29.9", nil, "chart requires kubeVersion: >=1.30.0-0"},
		{"v1.30.0-eks-1", nil, ""},
		{"v1.30.0", cloud, "operator.enabled needs Kubernetes 1.31 or later, and this is v1.30.0"},
		{"v1.31.0-gke.7", cloud, ""},
		{"v1.35.2", []string{"scheduling.enabled=true"}, "scheduling.enabled needs Kubernetes 1.36 or later, and this is v1.35.2"},
		{"v1.35.2", append([]string{"topologies.enabled=true"}, cloud...), "topologies.enabled needs Kubernetes 1.36 or later"},
		{newest, append([]string{"topologies.enabled=true", "scheduling.enabled=true"}, cloud...), ""},
	} {
		_, err := render(t, "kube-system", tt.kubernetes, values(t, "sim.yaml", tt.set...))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %v: %v, want %q", tt.kubernetes, tt.set, err, tt.want)
		}
	}
}

// A chart that lost its link, as where an archive was made without following it, says so.
func TestAChartWithoutItsFilesSaysSo(t *testing.T) {
	c := loadChart(t)
	c.Files = nil
	version, _ := common.ParseKubeVersion(newest)
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy, install.ReleaseName, install.KubeVersion = action.DryRunClient, "enipool", version
	if _, err := install.Run(c, values(t, "sim.yaml")); err == nil || !strings.Contains(err.Error(), "the chart lacks files/") {
		t.Errorf("%v", err)
	}
}

// The chart has every file of conf/kubernetes that it needs, and nothing of kustomize's.
func TestTheChartHoldsTheObjectsAlone(t *testing.T) {
	total := 0
	for _, f := range loadChart(t).Files {
		total += len(f.Data)
		for _, not := range []string{"kustomization.yaml", "README.md", "overlays/"} {
			if strings.Contains(f.Name, not) {
				t.Errorf("%s is in it", f.Name)
			}
		}
	}
	if total == 0 || total > 400_000 { // a release lies in a Secret, packed, which takes 1 MB
		t.Errorf("%d bytes", total)
	}
}
