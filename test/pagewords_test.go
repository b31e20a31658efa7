package test

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	words      = regexp.MustCompile(`[\w-]+`)
	leftColumn = regexp.MustCompile(`(?m)^\| .*? \|`)
)

// wordsOfCode returns what is named in the repository: identifiers and texts of Go, but no comments and of tests only their names; the other
// files as they are; and the parts of all files' paths.
func wordsOfCode(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	put := func(text string) {
		for _, w := range words.FindAllString(text, -1) {
			all[strings.Trim(w, "-")] = true
			for _, part := range strings.Split(w, "-") { // -run, %s-ports
				all[part] = true
			}
		}
	}
	for _, s := range parsed(t, "..") {
		own := !strings.HasSuffix(s.file, "_test.go")
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				put(n.Name.Name)
			case *ast.Ident:
				if own {
					put(n.Name)
				}
			case *ast.BasicLit:
				if own || strings.HasPrefix(n.Value, `"ENIPOOL_`) { // a variable that only tests read
					put(regexp.MustCompile(`\\[nt]`).ReplaceAllString(n.Value, " "))
				}
			}
			return true
		})
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".build", ".git", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		put(path)
		if err != nil || !d.Type().IsRegular() || slices.Contains([]string{".md", ".go", ".csv"}, filepath.Ext(path)) || strings.HasPrefix(path, "../test/language") {
			return err
		}
		text, err := os.ReadFile(path)
		put(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Names of other systems and examples, which stand in pages alone. Those of systems that people come from stand in the left column of
// the tables of conf/migrate, which is not looked at.
const foreignWords = `
describe-cluster describe-addon-configuration delete-addon addon-name addon-version vpc-cni
bump-revision mark-compacted etcdutl force-conflicts take-ownership patch-file cascade skopeo velero resource-modifier-configmap
SchedulingGated ContainerCreating FailedPrepareDynamicResources ResourceNotRegistered ingress-bandwidth egress-bandwidth
KubePdbNotEnoughHealthyPods poddisruptionbudget go_ process_ EnipoolOperator
run-firewall FELIX_IPTABLESMARKMASK FELIX_NFTABLESMARKMASK PostUp
suppress_ifgroup bpf_redirect_neigh TC_ACT_OK pwrite max-allocate ENIPODS-ports
agent-NAME ENI_CONFIG_LABEL_DEF my-operator eni0 net1 u-web enipool-second resourceClaims resourceClaimTemplateName aws-cn aws-us-gov synctest
`

// What a page names in backticks, and variables before =, are there: a key, a field, a metric, a reason, a variable, a function, a file. The changelog tells of what
// was, the glossary of what shall not be, and a program writes the page of specs.
func TestPagesNameWhatThereIs(t *testing.T) {
	code, used := wordsOfCode(t), map[string]bool{}
	foreign := strings.Fields(foreignWords)
	names := 0
	for _, page := range pages(t) {
		if slices.Contains([]string{"CHANGELOG.md", "pkg/GLOSSARY.md", "test/CONFORMANCE.md"}, page) {
			continue
		}
		text := unbroken(read(t, page))
		if strings.HasPrefix(page, "conf/migrate/") {
			text = leftColumn.ReplaceAllString(text, "")
		}
		for _, quoted := range regexp.MustCompile("`([^`\n]+)`|\\b([A-Z][A-Z_]+)=").FindAllStringSubmatch(text, -1) {
			for _, w := range words.FindAllString(quoted[1]+quoted[2], -1) {
				w = strings.Trim(w, "-")
				if len(w) < 3 || !regexp.MustCompile(`^[A-Za-z_]`).MatchString(w) {
					continue
				}
				names++
				if used[w] = true; !code[w] && !slices.Contains(foreign, w) {
					t.Errorf("%s: %s: nothing here is called %s", page, quoted[0], w)
				}
			}
		}
	}
	if names < 1000 {
		t.Errorf("only %d names", names)
	}
	for _, w := range foreign {
		if !used[w] || code[w] {
			t.Errorf("%s needs no exception any more", w)
		}
	}
}
