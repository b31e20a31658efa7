package test

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/kube"
)

// unbroken puts what a page has in backticks on one line each.
func unbroken(page string) string {
	return regexp.MustCompile("(?s)```.*?```|`[^`]*`").ReplaceAllStringFunc(page, func(span string) string {
		if strings.HasPrefix(span, "```") {
			return span
		}
		return regexp.MustCompile(`\n *`).ReplaceAllString(span, " ")
	})
}

// texts returns what people are told: pages, the files of conf with their comments, and the programs' messages, by name.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, page := range pages(t) {
		all[page] = unbroken(read(t, page))
	}
	now, _, _ := strings.Cut(all["CHANGELOG.md"], "\n### Changes\n")
	all["CHANGELOG.md"] = leftColumn.ReplaceAllString(now, "") // there are the former names
	for _, folder := range []string{"conf", "pkg", "plugins"} {
		err := filepath.WalkDir(filepath.Join("..", folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains([]string{".yaml", ".go"}, filepath.Ext(path)) && !strings.HasSuffix(path, "_test.go") {
				name := strings.TrimPrefix(path, "../")
				all[name] = read(t, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// The forms in which a text has a command: between backticks, and in a line of its own, in a comment of a file too.
var (
	quoted = regexp.MustCompile("`([a-z-]+ [^`\n]+)`")
	alone  = regexp.MustCompile(`(?m)^(?:#?   +|.*=\$\()((?:\S*/)?(?:enipoolctl|enipool-agent|enipool-operator|kubectl|in) .+)$`)
)

// commandsIn returns the commands of a program that a text has, each without what stands behind it.
func commandsIn(text, program string) (list [][]string) {
	for _, m := range slices.Concat(quoted.FindAllStringSubmatch(text, -1), alone.FindAllStringSubmatch(text, -1)) {
		for part := range strings.SplitSeq(m[1], " -- ") { // kubectl exec ... -- enipoolctl ...
			for _, end := range []string{" # ", "  #", " | ", ", ", "; ", " && ", " ("} {
				part, _, _ = strings.Cut(part, end)
			}
			words := strings.Fields(strings.Trim(part, ").,"))
			if len(words) > 2 && strings.HasSuffix(words[0], "/up/in") { // what make kube-up keeps up runs the command behind it
				words = words[1:]
			}
			if len(words) > 1 && filepath.Base(words[0]) == program {
				list = append(list, slices.DeleteFunc(words[1:], func(w string) bool { return w == "..." }))
			}
		}
	}
	return list
}

// understands runs a command for its help alone: the program reads its words and flags first. The value of a flag at the end may be left
// to people.
func understands(t *testing.T, where, program string, words []string) {
	t.Helper()
	last := ""
	if end := words[len(words)-1]; strings.HasPrefix(end, "-") && !strings.Contains(end, "=") {
		words, last = words[:len(words)-1], end
	}
	out, err := exec.Command(program, append(slices.Clone(words), "--help")...).CombinedOutput()
	help := string(out)
	// The usage names the command that was found. If that is a group it does not know the word behind it.
	name, rest := filepath.Base(program), words
	for len(rest) > 1 && strings.HasPrefix(rest[0], "-") { // kubectl --namespace kube-system get
		rest = rest[2:]
	}
	found := 0
	for found < len(rest) && strings.Contains(help, name+" "+rest[found]) {
		name += " " + rest[found]
		found++
	}
	isGroup := (strings.Contains(help, name+" [command]") || strings.Contains(help, name+" SUBCOMMAND")) && found < len(rest) && !strings.HasPrefix(rest[found], "-")
	if err != nil || found == 0 && len(rest) > 0 || isGroup || !strings.Contains(help, last) {
		t.Errorf("%s: %s %s %s: %v\n%s", where, filepath.Base(program), strings.Join(words, " "), last, err, out)
	}
}

// The node's and the cluster's programs are told with the flags that they have.
func TestProgramsUnderstandWhatPeopleAreTold(t *testing.T) {
	dir, seen := t.TempDir(), map[string]bool{}
	if out, err := exec.Command("go", "build", "-o", dir, "../plugins/enipool-agent", "../plugins/enipool-operator").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for where, text := range texts(t) {
		for _, program := range []string{"enipool-agent", "enipool-operator"} {
			for _, words := range commandsIn(text, program) {
				if line := program + strings.Join(words, " "); !seen[line] {
					seen[line] = true
					understands(t, where, filepath.Join(dir, program), words)
				}
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("found only %d commands", len(seen))
	}
}

// A command that a page, a comment or a message names is one that the program understands, with these flags. Groups of commands are also
// named without the program, like `pool show`.
func TestCommandsThatPeopleAreToldAreUnderstood(t *testing.T) {
	ctl := enipoolctl(t)
	group := regexp.MustCompile("`((?:pool|cloud|cluster|migrate) [a-z]+[^`\n=:]*)`")
	seen := map[string]bool{}
	for where, text := range texts(t) {
		list := commandsIn(text, "enipoolctl")
		for _, m := range group.FindAllStringSubmatch(text, -1) {
			list = append(list, strings.Fields(m[1]))
		}
		for _, words := range list {
			if line := strings.Join(words, " "); !seen[line] {
				seen[line] = true
				understands(t, where, ctl, words)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("found only %d commands", len(seen))
	}
}

func TestKubectlUnderstandsWhatPeopleAreTold(t *testing.T) {
	kube.Need(t)
	bin, err := kube.Assets()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for where, text := range texts(t) {
		for _, words := range commandsIn(text, "kubectl") {
			if line := strings.Join(words, " "); !seen[line] {
				seen[line] = true
				understands(t, where, filepath.Join(bin, "kubectl"), words)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("found only %d commands", len(seen))
	}
}
