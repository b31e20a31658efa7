package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// told is a report as ginkgo writes it, cut down to one spec of each kind.
const told = `[{"SuitePath": "e2e.test", "StartTime": "2026-11-28T17:57:37.012653039Z", "SpecReports": [
{"ContainerHierarchyTexts": null, "LeafNodeType": "ReportBeforeSuite", "LeafNodeText": "", "State": "passed"},
{"ContainerHierarchyTexts": ["[sig-network] DNS"], "LeafNodeType": "It", "LeafNodeText": "should provide DNS [Conformance]", "State": "passed"},
{"ContainerHierarchyTexts": ["[sig-network] HostPort"], "LeafNodeType": "It", "LeafNodeText": "validates [Conformance]", "State": "failed", "Failure": {"Message": "\n  no route to ` + "`x`" + `\nand more"}},
{"ContainerHierarchyTexts": ["[sig-node] Pod InPlace Resize Container", "burstable"], "LeafNodeType": "It", "LeafNodeText": "grows", "State": "timedout", "Failure": {"Message": "too long"}},
{"ContainerHierarchyTexts": ["[sig-apps] StatefulSet"], "LeafNodeType": "It", "LeafNodeText": "keeps its volumes", "State": "skipped", "Failure": {"Message": "No default storage class"}},
{"ContainerHierarchyTexts": ["[sig-storage] CSI"], "LeafNodeType": "It", "LeafNodeText": "was not chosen", "State": "skipped", "Failure": {"Message": ""}},
{"ContainerHierarchyTexts": ["Something"], "LeafNodeType": "It", "LeafNodeText": "new", "State": "pending"},
{"ContainerHierarchyTexts": ["Something"], "LeafNodeType": "It", "LeafNodeText": "newer", "State": "passed"}
]}]`

func readTold(t *testing.T) (began time.Time, list []spec) {
	t.Helper()
	began, list, err := readReport(strings.NewReader(told))
	if err != nil {
		t.Fatal(err)
	}
	return began, list
}

func TestAReportHasTheSpecsThatWereChosen(t *testing.T) {
	want := []spec{
		{"[sig-network] DNS should provide DNS [Conformance]", "sig-network", passed, ""},
		{"[sig-network] HostPort validates [Conformance]", "sig-network, HostPort", failed, "no route to `x`"},
		{"[sig-node] Pod InPlace Resize Container burstable grows", "sig-node, Pod InPlace Resize", failed, "too long"},
		{"[sig-apps] StatefulSet keeps its volumes", "sig-apps, StatefulSet", skipped, "No default storage class"},
		{"Something newer", "others", passed, ""},
	}
	began, got := readTold(t)
	if began.Format(time.DateTime) != "2026-11-28 17:57:37" {
		t.Errorf("the run began at %v", began)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(spec{})); diff != "" {
		t.Error(diff)
	}
}

func TestAReportWithoutSpecsIsNone(t *testing.T) {
	for _, text := range []string{"", "[]", `[{"SpecReports": [{"LeafNodeType": "It", "State": "skipped"}]}]`} {
		if _, list, err := readReport(strings.NewReader(text)); err == nil {
			t.Errorf("%q has the specs %v", text, list)
		}
	}
}

func TestALongReasonIsCut(t *testing.T) {
	got := reasonIn(strings.Repeat("é", longest+1) + "\nmore")
	if want := strings.Repeat("é", longest) + "..."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheReasonOfAComparisonIsWhatDiffers(t *testing.T) {
	got := reasonIn("Expected object to be comparable, diff: \u00a0\u00a0v1.Requirements{\n-\u00a0\tLimits: list{\n\u00a0\u00a0\tRequests: list{\n+\u00a0\tLimits: nil,\n")
	if want := "Expected object to be comparable, diff: v1.Requirements{ - Limits: list{ + Limits: nil,"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThePageTellsWhatBecameOfTheSpecs(t *testing.T) {
	began, list := readTold(t)
	better := slices.Clone(list)
	better[1].outcome, better[2].outcome = passed, passed
	got := page("# Head\n\n", []result{{variants[0], began, list}, {variants[2], began, better}})
	want := "# Head\n\n" +
		"- **nftables**, run on 2026-11-28: " + variants[0].about + "\n" +
		"- **scheduling**, run on 2026-11-28: " + variants[2].about + "\n\n" +
		`| specs                        | nftables                 | scheduling               |
| ---------------------------- | ------------------------ | ------------------------ |
| others                       | 1 of 1 passed            | 1 of 1 passed            |
| sig-apps, StatefulSet        | 0 of 0 passed, 1 skipped | 0 of 0 passed, 1 skipped |
| sig-network                  | 1 of 1 passed            | 1 of 1 passed            |
| sig-network, HostPort        | 0 of 1 passed            | 1 of 1 passed            |
| sig-node, Pod InPlace Resize | 0 of 1 passed            | 1 of 1 passed            |
| all                          | 2 of 4 passed, 1 skipped | 4 of 4 passed, 1 skipped |

## Failed with nftables

- [sig-network] HostPort validates [Conformance]
  ` + "`no route to 'x'`" + `
- [sig-node] Pod InPlace Resize Container burstable grows
  ` + "`too long`" + `

## Skipped by themselves with nftables

- [sig-apps] StatefulSet keeps its volumes
  ` + "`No default storage class`" + `
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestVariantsAreFoundByTheirNames(t *testing.T) {
	list, err := variantsOf("scheduling,nftables")
	if err != nil || len(list) != 2 || list[0].name != "scheduling" || list[1].name != "nftables" {
		t.Errorf("got %v, %v", list, err)
	}
	if list, err := variantsOf("ipvs"); err == nil {
		t.Errorf("ipvs gives %v", list)
	}
}

// What a variant asks for is what the test can do.
func TestTheTestHasTheFlagsOfEachVariant(t *testing.T) {
	text, err := os.ReadFile("../cluster/conformance_test.go")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, m := range regexp.MustCompile(`flag\.[A-Z][a-z]+\("(specs\.[a-z]+)"`).FindAllSubmatch(text, -1) {
		has[string(m[1])] = true
	}
	for _, v := range variants {
		for _, flag := range v.command(options{}, "report.json") {
			name, _, _ := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
			if strings.HasPrefix(name, "specs.") && !has[name] {
				t.Errorf("%s: the test has no flag %s", v.name, flag)
			}
		}
	}
	if len(has) < 6 {
		t.Errorf("the test has only the flags %v", has)
	}
}
