package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

const project = "../../conf/helm/enipool"

func TestVersionsOfTheChartAreInTheOrderOfReleases(t *testing.T) {
	for _, tt := range []struct{ release, want string }{
		{"unreleased", "0.0.0-gunreleased"},
		{"0123456", "0.0.0-g0123456"},
		{"7bad4a89-dirty", "0.0.0-g7bad4a89-dirty"},
		{"some_tag", "0.0.0-gsome-tag"},
		{"v1.2.3", "1.2.3"},
		{"v1.2.3-dirty", "1.2.4-0.0-dirty"},
		{"v1.2.3-5-g0123456", "1.2.4-0.5.g0123456"},
		{"v1.2.3-5-g0123456-dirty", "1.2.4-0.5.g0123456-dirty"},
	} {
		if got := chartVersion(tt.release); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.release, got, tt.want)
		}
	}
}

// load reads a chart as Helm does.
func load(t *testing.T, path string) *chart.Chart {
	t.Helper()
	was := slog.Default()
	defer slog.SetDefault(was)
	slog.SetDefault(slog.New(slog.DiscardHandler)) // it tells of the link, which is meant
	c, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*chart.Chart)
}

// files are a chart's by name.
func files(c *chart.Chart) map[string]string {
	all := map[string]string{}
	for _, f := range slices.Concat(c.Files, c.Templates) {
		all[f.Name] = string(f.Data)
	}
	all["values.schema.json"] = string(c.Schema)
	return all
}

// The archive is the chart: Helm finds in it what it finds in the folder, but for the version and the images' tag.
func TestHelmReadsTheArchiveAsTheFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "chart.tgz")
	var said strings.Builder
	if err := run([]string{"-dir", project, "-release", "v1.2.3-5-g0123456", "-o", out}, &said); err != nil {
		t.Fatal(err)
	}
	got, want := load(t, out), load(t, project)
	if diff := cmp.Diff(files(want), files(got)); diff != "" {
		t.Errorf("(-folder +archive):\n%s", diff)
	}
	if got.Metadata.Version != "1.2.4-0.5.g0123456" || got.Metadata.AppVersion != "v1.2.3-5-g0123456" || !strings.Contains(said.String(), "enipool 1.2.4-0.5.g0123456 of images v1.2.3-5-g0123456") {
		t.Errorf("%s, %s; it said %s", got.Metadata.Version, got.Metadata.AppVersion, &said)
	}
	want.Metadata.Version, want.Metadata.AppVersion = got.Metadata.Version, got.Metadata.AppVersion
	if diff := cmp.Diff(want.Metadata, got.Metadata); diff != "" {
		t.Error(diff)
	}
	values := map[string]any{"agent": map[string]any{"cloud": map[string]any{"provider": "sim", "endpoint": "unix:///vpc"}, "vpcCIDRs": []any{"10.0.0.0/16"}}}
	check := action.NewLint()
	check.Strict, check.Namespace = true, "kube-system"
	for _, err := range check.Run([]string{out}, values).Errors {
		t.Error(err)
	}
}

func TestTheTagOfTheImagesCanBeAnother(t *testing.T) {
	out := filepath.Join(t.TempDir(), "chart.tgz")
	if err := run([]string{"-dir", project, "-release", "0123456", "-tag", "mine", "-o", out}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := load(t, out).Metadata; got.Version != "0.0.0-g0123456" || got.AppVersion != "mine" {
		t.Errorf("%+v", got)
	}
}

func TestTheSameFilesMakeTheSameArchive(t *testing.T) {
	first, err := pack(project, "1.2.3", "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack(project, "1.2.3", "v1.2.3")
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second one is another one, %v", err)
	}
}

func TestWhatHelmWouldReadOtherwiseIsRefused(t *testing.T) {
	for _, tt := range []struct{ ignore, about, want string }{
		{"*.md\n", "version: 1\nappVersion: 1\n", "*.md: only names and paths"},
		{"/a\n", "version: 1\nappVersion: 1\n", "only names and paths"},
		{"a/\n", "version: 1\nappVersion: 1\n", "only names and paths"},
		{"", "version: 1\n", "find appVersion: Chart.yaml must have one line"},
		{"", "version: 1\nversion: 2\nappVersion: 1\n", "find version: Chart.yaml must have one line"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{".helmignore": tt.ignore, "Chart.yaml": tt.about} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := run([]string{"-dir", dir, "-o", filepath.Join(dir, "out")}, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.ignore, err, tt.want)
		}
	}
}
