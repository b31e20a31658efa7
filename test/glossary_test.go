package test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fixed are texts that programs read, older releases of ours among them.
var fixed = []string{"waiter 1"}

// irregular are the forms of verbs that get more than an ending.
var irregular = map[string]string{
	"give": "(?:give|gives|giving|gave|given)", "take": "(?:take|takes|taking|took|taken)", "let": "(?:let|lets|letting)",
}

// glossary makes one expression of the words that pkg/GLOSSARY.md has in backticks in its
// second column, with what to say instead of each.
func glossary(t *testing.T) (wrong *regexp.Regexp, say map[string]string) {
	t.Helper()
	var words []string
	say = map[string]string{}
	for line := range strings.Lines(read(t, "pkg/GLOSSARY.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 { // | say | do not say | it means |
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z ENI]+)`").FindAllStringSubmatch(cells[2], -1) {
			say[strings.ToLower(m[1])] = strings.TrimSpace(cells[1])
			verb, rest, _ := strings.Cut(m[1], " ")
			if verb == "let" { // what is let go on is another thing
				words = append(words, irregular[verb]+" "+rest)
			} else if forms, is := irregular[verb]; is {
				words = append(words, forms+" (?:(?:it|them|some) )?"+rest)
			} else {
				words = append(words, m[1]+"s?")
			}
		}
	}
	if len(words) < 10 {
		t.Fatalf("pkg/GLOSSARY.md: only the words %q are found in its table", words)
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(words, "|") + `)\b`), say
}

// wrongWords finds the glossary's wrong words in what people read: a document, or the
// strings of a package. A string is read by people where it has a space; a single word may
// be a key or a path.
func wrongWords(p part, wrong *regexp.Regexp) (found []finding) {
	for i, line := range strings.Split(p.text, "\n") {
		for _, word := range wrong.FindAllString(withoutCode(line), -1) {
			found = append(found, finding{p.name + ":" + strconv.Itoa(i+1), strings.ToLower(word)})
		}
	}
	for _, s := range p.sources {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				_, tags := n.(*ast.StructType)
				return !tags
			}
			text, _ := strconv.Unquote(literal.Value)
			if !strings.Contains(text, " ") || slices.Contains(fixed, text) {
				return true
			}
			for _, word := range wrong.FindAllString(text, -1) {
				found = append(found, s.at(n, "%s", strings.ToLower(word)))
			}
			return true
		})
	}
	return found
}

// withoutCode takes out what a document quotes from programs and files.
func withoutCode(line string) string {
	return regexp.MustCompile("`[^`]*`").ReplaceAllString(line, "")
}

// documents returns the pages and the files of conf/ that people read. The CHANGELOG keeps
// the words of its time.
func documents(t *testing.T) (list []part) {
	t.Helper()
	list = append(list, part{name: "README.md", text: read(t, "README.md")})
	for _, folder := range []string{"pkg", "conf"} {
		err := filepath.WalkDir("../"+folder, func(name string, d fs.DirEntry, err error) error {
			name = strings.TrimPrefix(filepath.ToSlash(name), "../")
			page := strings.HasSuffix(name, ".md") && name != "pkg/GLOSSARY.md"
			settings := folder == "conf" && slices.Contains([]string{".yaml", ".json"}, path.Ext(name))
			if err == nil && (page || settings) {
				list = append(list, part{name: name, text: read(t, name)})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func TestTheWordsOfTheGlossaryAreFoundInDocuments(t *testing.T) {
	wrong, say := glossary(t)
	p := part{name: "page", text: "The waiters gave back what `waiter` says, giving it back.\nA foreigner is nobody; Foreign ENIs."}
	var got []string
	for _, f := range wrongWords(p, wrong) {
		got = append(got, f.String())
	}
	want := []string{"page:1: waiters", "page:1: gave back", "page:1: giving it back", "page:2: foreign"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if say["waiter"] != "pending ADD" {
		t.Errorf("instead of waiter the glossary says %q", say["waiter"])
	}
}
