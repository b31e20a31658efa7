package page_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/page"
	"github.com/enipool/enipool/pkg/page/pagetest"
)

type inner struct {
	Name  string
	Count int
	List  []leaf
}

type leaf struct{ Name string }

type view struct {
	Title string
	Share int
	In    inner
	List  []inner
	page.Parts
}

// all are the words of a template in every place.
const all = `<title>{{with .Title}}{{.}} - {{end}}enipool</title>
<h1 title="{{.Title}}">{{or .Title "None & <none>"}}</h1>
{{range .List}}<li class="{{.Name}}">{{.Name}} {{.Count}}{{if .Count}}, {{len .List}}{{else}}, none{{end}}</li>
{{range .List}}<i>{{.Name}}</i>{{end -}}
{{else}}<p>nothing</p>{{end -}}
{{if gt .Share 1}} of {{.Share}}{{end}}{{with .In}} {{.Name}}{{end}} {{.In.Name}} {{if .List}}{{with .In.Count}}{{.}} more{{else}}no more{{end}}{{end}}
{{range .Styles}}<style>{{.}}</style>{{end}}`

func TestAPageIsAsHTMLTemplateMakesIt(t *testing.T) { pagetest.Compare[view](t, all) }

func TestTheProgramsOwnTextIsAsItIs(t *testing.T) {
	var out bytes.Buffer
	v := view{Title: "<b>", Parts: page.Parts{Styles: []page.Trusted{"a > b {}"}}}
	if err := page.MustParse("{{.Title}}{{range .Styles}}<style>{{.}}</style>{{end}}").Execute(&out, v); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "&lt;b&gt;<style>a > b {}</style>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAPageThatNamesWhatIsNotThereIsNotWritten(t *testing.T) {
	for _, text := range []string{"a {{.Nothing}}", "a {{.In.Nothing}}", "a {{if .Nothing}}{{end}}", "a {{len .Nothing}}", `a {{or .Nothing "b"}}`, "a {{if gt .Nothing 1}}{{end}}",
		"a {{with .In}}{{.Title}}{{end}}"} {
		var out bytes.Buffer
		err := page.MustParse(text).Execute(&out, view{})
		if err == nil || !strings.Contains(err.Error(), " has no ") || out.Len() > 0 {
			t.Errorf("%s: %q, %v", text, &out, err)
		}
	}
}

func TestWhatIsNoTemplatePanics(t *testing.T) {
	for _, text := range []string{"{{.Title", "{{end}}", "{{else}}", "{{if .Title}}", "{{if .Title}}{{else}}{{else}}{{end}}", "{{printf .Title}}", "{{or .Title none}}", "{{if gt .Share many}}{{end}}",
		"{{.Title .Share}}", "{{}}", "{{range}}{{end}}"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", text)
				}
			}()
			page.MustParse(text)
		}()
	}
}
