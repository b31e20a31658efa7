package cni

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"
)

// codeNumbers are what the plugin answers with, by how its code names them.
var codeNumbers = map[string]uint{
	"types.ErrIncompatibleCNIVersion": types.ErrIncompatibleCNIVersion, "types.ErrUnsupportedField": types.ErrUnsupportedField,
	"types.ErrInvalidEnvironmentVariables": types.ErrInvalidEnvironmentVariables, "types.ErrIOFailure": types.ErrIOFailure,
	"types.ErrDecodingFailure": types.ErrDecodingFailure, "types.ErrInvalidNetworkConfig": types.ErrInvalidNetworkConfig,
	"types.ErrInvalidNetNS": types.ErrInvalidNetNS, "types.ErrTryAgainLater": types.ErrTryAgainLater,
	"types.ErrPluginNotAvailable": types.ErrPluginNotAvailable, "types.ErrInternal": types.ErrInternal,
	"CodeDuplicate": CodeDuplicate, "CodeMismatch": CodeMismatch, "CodeTaken": CodeTaken,
}

// Who reads a code in a pod's events finds it on the page, and the page has none that no pod gets.
func TestThePageTellsEachCodeOfTheProtocol(t *testing.T) {
	var files []string
	for _, folder := range []string{".", "../../plugins/enipool"} {
		list, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	answered := map[uint]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\btypes\.Err[A-Z]\w+|\bCode[A-Z]\w+`).FindAllString(string(text), -1) {
			number, is := codeNumbers[name]
			if !is {
				t.Errorf("%s: the number of %s is not known here", f, name)
			}
			answered[number] = true
		}
	}
	page, err := os.ReadFile("../../conf/TROUBLESHOOTING.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, told []string
	for _, n := range slices.Sorted(maps.Keys(answered)) {
		want = append(want, fmt.Sprint(n))
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(string(page), -1) {
		told = append(told, m[1])
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("codes of conf/TROUBLESHOOTING.md (-code +page):\n%s", diff)
	}
}
