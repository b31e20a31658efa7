package manifests

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wrongSince returns the marks of keys that no release or commit has, by the headings of the change log: "unreleased" is one only
// while the first heading says so.
func wrongSince(log string, marks []string) (wrong []string) {
	var releases []string
	for i, heading := range regexp.MustCompile(`(?m)^## (\S+)`).FindAllStringSubmatch(log, -1) {
		if name := strings.ToLower(heading[1]); i == 0 || name != "unreleased" {
			releases = append(releases, name)
		}
	}
	commit := regexp.MustCompile("^[0-9a-f]{7,40}$")
	for _, mark := range marks {
		if !slices.Contains(releases, mark) && !commit.MatchString(mark) && !slices.Contains(wrong, mark) {
			wrong = append(wrong, mark)
		}
	}
	return wrong
}

func TestKeysComeWithAReleaseOfTheChangeLog(t *testing.T) {
	log := read(t, "../../CHANGELOG.md")
	for _, file := range []string{"../../conf/agent.schema.json", "../../conf/operator.schema.json", helm + "/enipool/values.schema.json"} {
		var marks []string
		for _, mark := range regexp.MustCompile(`"x-since": "([^"]*)"`).FindAllStringSubmatch(read(t, file), -1) {
			marks = append(marks, mark[1])
		}
		if wrong := wrongSince(log, marks); len(marks) == 0 || wrong != nil {
			t.Errorf("%s: of %d keys some came with %v, which CHANGELOG.md does not have", file, len(marks), wrong)
		}
	}
}

func TestNothingIsUnreleasedBelowTheHeadingOfARelease(t *testing.T) {
	marks := []string{"9295a34", "unreleased", "v0.1.0"}
	for log, want := range map[string][]string{
		"# Changelog\n\n## Unreleased\n\n## v0.1.0\n": nil,
		"# Changelog\n\n## v0.1.0\n":                  {"unreleased"},
		"# Changelog\n\n## Unreleased\n":              {"v0.1.0"},
	} {
		if got := wrongSince(log, marks); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", log, got, want)
		}
	}
}
