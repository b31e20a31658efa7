package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObjectsAreReadOneByOneAndInLists(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "---\n---\nnull\n": nil,
		"kind: A\napiVersion: x/v1\n---\n# a comment\n---\nkind: B\n":                 {"A x/v1", "B "},
		`{"kind": "A", "apiVersion": "x/v1"}{"kind": "B"}`:                            {"A x/v1", "B "},
		"kind: List\napiVersion: v1\nitems:\n- {kind: A, apiVersion: x/v1}":           {"A x/v1"},
		"kind: AList\napiVersion: x/v1\nitems:\n- {metadata: {name: a}}\n- {kind: B}": {"A x/v1", "B "},
	} {
		list, err := Read(strings.NewReader(text))
		var got []string
		for _, o := range list {
			got = append(got, o.Kind+" "+o.APIVersion)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{"a: [": "yaml", "kind: List\nitems: [7]": "item 1: ", "- 1": "cannot unmarshal"} {
		if list, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, %v; want %q", text, list, err, want)
		}
	}
}

func TestStdinIsAFileToo(t *testing.T) {
	file, err := Open("-", strings.NewReader("kind: A"))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := Read(file); err != nil || len(list) != 1 || file.Close() != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Open("testdata/none", nil); err == nil {
		t.Error("a file that is not there is read")
	}
}
