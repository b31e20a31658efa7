package pool

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nodecache"
)

// pool show prints the reasons of targets as single words: its help says what they mean.
func TestShowsHelpExplainsEachReasonOfATarget(t *testing.T) {
	text, err := os.ReadFile("../../../pkg/scale/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`Reason += "([a-z-]+)"`).FindAllStringSubmatch(string(text), -1)
	if len(reasons) < 11 {
		t.Fatalf("only %d reasons", len(reasons))
	}
	help := showCommand(&nodecache.Cache{}).Long
	for _, r := range reasons {
		if !strings.Contains(help, "\n  "+r[1]+" ") {
			t.Errorf("%s is not explained", r[1])
		}
	}
}
