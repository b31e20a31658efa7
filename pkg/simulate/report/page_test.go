package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/simulate"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

func asHTML(t *testing.T, r Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.HTML(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// parsed returns the elements of a page by name.
func parsed(t *testing.T, page string) map[string][]*html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	elements := map[string][]*html.Node{}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			elements[n.Data] = append(elements[n.Data], n)
		}
	}
	return elements
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// content returns the text in an element.
func content(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	}
	return text.String()
}

func TestPageLoadsNothing(t *testing.T) {
	page := asHTML(t, sample(4, 720))
	loading := regexp.MustCompile(`^(src|srcset|href|action|formaction|data|poster|background|ping|style|on.*)$`)
	for name, list := range parsed(t, page) {
		if strings.Contains(" link base img iframe object embed video audio source form ", " "+name+" ") {
			t.Errorf("it has a %s", name)
		}
		for _, n := range list {
			for _, a := range n.Attr {
				if loading.MatchString(a.Key) {
					t.Errorf("a %s has %s=%q", name, a.Key, a.Val)
				}
			}
		}
	}
	// The library names its home and its licence in comments; nothing else may.
	for _, known := range []string{embeddedText("uplot/uPlot.iife.min.js"), embeddedText("uplot/uPlot.min.css")} {
		if !strings.Contains(page, known) {
			t.Error("the library is not in it")
		}
		if bad := regexp.MustCompile(`fetch\(|import\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|url\(|@import|\.src\b`).FindString(known); bad != "" {
			t.Errorf("the library has %s", bad)
		}
		page = strings.ReplaceAll(page, known, "")
	}
	if bad := regexp.MustCompile(`(?i)https?:|fetch\(|\bimport\b|XMLHttpRequest|WebSocket|EventSource|sendBeacon|url\(|\.src\b|innerHTML`).FindString(page); bad != "" {
		t.Errorf("it has %s", bad)
	}
}

func TestPageForbidsAllButItsOwnScriptsAndStyles(t *testing.T) {
	elements := parsed(t, asHTML(t, sample(1, 3)))
	meta := elements["meta"][1]
	if got := attribute(meta, "http-equiv"); got != "Content-Security-Policy" {
		t.Fatalf("the second meta is %q", got)
	}
	allowed := map[string][]string{}
	for _, name := range []string{"style", "script"} {
		for _, n := range elements[name] {
			if attribute(n, "type") == "" {
				allowed[name] = append(allowed[name], hashOf(content(n)))
			}
		}
	}
	want := "default-src 'none'; style-src " + strings.Join(allowed["style"], " ") +
		"; script-src " + strings.Join(allowed["script"], " ") + "; base-uri 'none'; form-action 'none'"
	if diff := cmp.Diff(want, attribute(meta, "content")); diff != "" || len(allowed["style"]) != 3 || len(allowed["script"]) != 2 {
		t.Errorf("%d styles, %d scripts, -want +got:\n%s", len(allowed["style"]), len(allowed["script"]), diff)
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func TestPageTakesAnyNameAsText(t *testing.T) {
	for _, name := range []string{`</script><b>`, `<!--<script>`, `" onclick="x`, `{{.Release}}`, "a\u2028b", "`${x}`", `]]>`} {
		r := sample(2, 5)
		r.Results[0].Name, r.Load.Name, r.Instance.Name, r.Subnets[0].ID, r.Release = name, name, name, name, name
		elements := parsed(t, asHTML(t, r))
		if len(elements["b"]) > 0 || len(elements["script"]) != 3 {
			t.Errorf("%q: %d b, %d scripts", name, len(elements["b"]), len(elements["script"]))
		}
		for at, want := range map[*html.Node]string{elements["h1"][0]: name, elements["tr"][2].FirstChild: name} {
			if got := content(at); got != want {
				t.Errorf("%s says %q, want %q", at.Data, got, want)
			}
		}
		if got := dataOf(t, elements).Settings[0].Name; got != name {
			t.Errorf("in the data it is %q, want %q", got, name)
		}
	}
}

// pageData is what the page's script reads.
type pageData struct {
	Duration, Step float64
	Settings       []struct {
		Name                                                     string
		Pods, Waited                                             int
		Start, Longest                                           []float64
		Demand, Target, Owned, Free, Idle, Waiting, Calls, Looks []int
	}
}

func dataOf(t *testing.T, elements map[string][]*html.Node) (d pageData) {
	t.Helper()
	for _, n := range elements["script"] {
		if attribute(n, "id") == "data" {
			if err := json.Unmarshal([]byte(content(n)), &d); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

func TestPageHasAllTheData(t *testing.T) {
	for _, bins := range []int{0, 1, 720} {
		r := sample(4, bins)
		r.Results[3].Series = nil
		var want readReport
		if err := json.Unmarshal(asJSON(t, r), &want); err != nil {
			t.Fatal(err)
		}
		d := dataOf(t, parsed(t, asHTML(t, r)))
		if len(d.Settings) != len(want.Results) || d.Duration != 86400 {
			t.Fatalf("%d settings of %v s", len(d.Settings), d.Duration)
		}
		for i, s := range d.Settings {
			got := make([]readBin, len(s.Start))
			for k := range s.Start {
				got[k] = readBin{s.Start[k], s.Demand[k], s.Target[k], s.Owned[k], s.Free[k], s.Idle[k], s.Waiting[k], s.Longest[k], s.Calls[k], s.Looks[k]}
			}
			if diff := cmp.Diff(want.Results[i].Series, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", s.Name, diff)
			}
			if s.Pods != want.Results[i].Pods || s.Waited != want.Results[i].Waits.Waited {
				t.Errorf("%s: %d of %d pods waited", s.Name, s.Waited, s.Pods)
			}
		}
	}
}

func TestPageShowsTheTableOfTheTerminal(t *testing.T) {
	r := sample(10, 100)
	elements := parsed(t, asHTML(t, r))
	for k, n := range elements["i"] {
		if got, want := attribute(n, "class"), fmt.Sprint("hue", k%hues); got != want || !strings.Contains(embeddedText("page.css"), "."+want+" {") {
			t.Errorf("setting %d has the colour %q, want %q", k, got, want)
		}
	}
	var got, want [][]cell
	for _, tr := range elements["tr"][2:] {
		var row []cell
		for n := range tr.ChildNodes() {
			if n.Data == "td" {
				row = append(row, cell{content(n), n.FirstChild.Data == "mark"})
			}
		}
		got = append(got, row)
	}
	want = usualColumns().cellRows(r.Results)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(elements["dt"]) != len(r.facts())+len(usualColumns()) {
		t.Errorf("%d explanations", len(elements["dt"]))
	}
}

func TestPageOfLittleIsAPage(t *testing.T) {
	for name, r := range map[string]Report{
		"nothing":      {},
		"no results":   sample(0, 0),
		"no series":    {Results: []simulate.Result{{}}},
		"one bin":      sample(2, 1),
		"many":         sample(20, 2),
		"no time":      {Results: []simulate.Result{{Series: make([]simulate.Bin, 2)}}},
		"nothing came": {Results: []simulate.Result{{Series: make([]simulate.Bin, 9)}, {Name: "x"}}},
	} {
		elements := parsed(t, asHTML(t, r))
		if got := len(dataOf(t, elements).Settings); got != len(r.Results) || len(elements["h1"]) != 1 {
			t.Errorf("%s: %d settings", name, got)
		}
	}
}

func TestLibraryIsTheOneItsReadmeNames(t *testing.T) {
	version := regexp.MustCompile(`\(v([0-9.]+)\)`).FindStringSubmatch(embeddedText("uplot/uPlot.iife.min.js"))
	if version == nil || !strings.Contains(embeddedText("uplot/README.md"), "uPlot "+version[1]) {
		t.Errorf("the library is %v", version)
	}
	if page := asHTML(t, Report{}); !strings.Contains(page, "Permission is hereby granted, free of charge") {
		t.Error("the page lacks the library's licence")
	}
}

func TestPageFailsAsItsWriterDoes(t *testing.T) {
	if err := sample(1, 1).HTML(full{}); !errors.Is(err, errFull) {
		t.Errorf("HTML = %v", err)
	}
}
