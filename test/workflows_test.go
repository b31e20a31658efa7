package test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// workflow is what GitHub knows of a workflow and ours have; another key is a mistake.
type workflow struct {
	Name string `yaml:"name"`
	On   struct {
		Push struct {
			Branches []string `yaml:"branches"`
			Tags     []string `yaml:"tags"`
		} `yaml:"push"`
		PullRequest *struct{} `yaml:"pull_request"`
	} `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency map[string]any    `yaml:"concurrency"`
	Jobs        map[string]struct {
		RunsOn  string            `yaml:"runs-on"`
		Minutes int               `yaml:"timeout-minutes"`
		Env     map[string]string `yaml:"env"`
		Steps   []step            `yaml:"steps"`
	} `yaml:"jobs"`
}

type step struct {
	Uses string            `yaml:"uses"`
	With map[string]any    `yaml:"with"`
	Env  map[string]string `yaml:"env"`
	Run  string            `yaml:"run"`
}

// workflows reads all, by the names of their files.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	paths, err := filepath.Glob("../.github/workflows/*")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%v, %v", paths, err)
	}
	all := map[string]workflow{}
	for _, path := range paths {
		var w workflow
		if err := yaml.UnmarshalWithOptions([]byte(read(t, strings.TrimPrefix(path, "../"))), &w, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = w
	}
	return all
}

// commands are what the steps of a workflow run, one after the other.
func (w workflow) commands() (all string) {
	for _, j := range w.Jobs {
		for _, s := range j.Steps {
			all += s.Run + "\n"
		}
	}
	return all
}

func TestWorkflowsAreWhole(t *testing.T) {
	for name, w := range workflows(t) {
		if w.Name == "" || len(w.Permissions) == 0 || len(w.Jobs) == 0 {
			t.Errorf("%s: name %q, permissions %v, %d jobs", name, w.Name, w.Permissions, len(w.Jobs))
		}
		for job, j := range w.Jobs {
			if j.RunsOn == "" || j.Minutes == 0 {
				t.Errorf("%s: %s runs on %q for %d minutes at most", name, job, j.RunsOn, j.Minutes)
			}
			for i, s := range j.Steps {
				if (s.Uses == "") == (s.Run == "") || s.Uses != "" && !regexp.MustCompile(`^actions/[a-z-]+@v\d+$`).MatchString(s.Uses) {
					t.Errorf("%s: step %d uses %q and runs %q", name, i, s.Uses, s.Run)
				}
				if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["fetch-depth"] != uint64(0) {
					t.Errorf("%s: a shallow clone has no tag and no release before: fetch-depth is %v", name, s.With["fetch-depth"])
				}
			}
		}
	}
	if said := workflows(t)["ci.yaml"].commands(); !strings.Contains(said, ".ci/run") {
		t.Errorf("ci.yaml runs %s", said)
	}
}

// A tag of which the chart makes a version, and no other, is built by make release, and what that gathers is what is published.
func TestATagIsPublishedAsMakeReleaseGathersIt(t *testing.T) {
	w := workflows(t)["release.yaml"]
	if !slices.Equal(w.On.Push.Tags, []string{"v[0-9]+.[0-9]+.[0-9]+"}) || w.On.Push.Branches != nil || w.On.PullRequest != nil {
		t.Errorf("on %+v", w.On)
	}
	if w.Permissions["contents"] != "write" || w.Permissions["packages"] != "write" || len(w.Permissions) != 2 {
		t.Errorf("permissions %v", w.Permissions)
	}
	said, at := w.commands(), 0
	for _, want := range []string{"make release\n", "crane push ", "gh release create "} { // in this order
		i := strings.Index(said[at:], want)
		if i < 0 {
			t.Fatalf("%q does not come after %q", want, said[:at])
		}
		at += i
	}
	if !strings.Contains(said, "--notes-file .build/release-notes.md .build/release/*\n") {
		t.Errorf("what is published is not what is gathered:\n%s", said)
	}
	// The images are pushed to where manifests and chart name them.
	for folder, image := range map[string]string{"base": "enipool", "operator": "enipool-operator"} {
		name := regexp.MustCompile(`(?m)^- name: (\S+)\n  newTag: `).FindStringSubmatch(read(t, "conf/kubernetes/"+folder+"/kustomization.yaml"))
		if name == nil || !strings.Contains(said, `"`+strings.TrimSuffix(name[1], image)+`$image:$GITHUB_REF_NAME"`) ||
			!strings.Contains(said, `".build/release/$image-image.tar"`) {
			t.Errorf("%s has the image %v; pushed is\n%s", folder, name, said)
		}
	}
	if !strings.Contains(said, "for image in enipool enipool-operator; do") {
		t.Errorf("not both images are pushed:\n%s", said)
	}
}

// What is built runs code of others, which is not to find a token that may write: not in its environment, and not in .git/config.
func TestWhatIsBuiltFindsNoTokenThatMayWrite(t *testing.T) {
	for name, w := range workflows(t) {
		if !slices.Contains(slices.Collect(maps.Values(w.Permissions)), "write") {
			continue
		}
		for _, j := range w.Jobs {
			if len(j.Env) > 0 {
				t.Errorf("%s: all steps of a job have %v", name, j.Env)
			}
			for _, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "actions/checkout") && s.With["persist-credentials"] != false {
					t.Errorf("%s: the checkout leaves its token in .git/config", name)
				}
				if len(s.Env) > 0 && regexp.MustCompile(`\b(make|go)\s+\w`).MatchString(s.Run) {
					t.Errorf("%s: builds with a token: %s", name, s.Run)
				}
			}
		}
	}
}
