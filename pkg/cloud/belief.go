package cloud

import "strings"

// Belief is something that a driver assumes about its cloud.
type Belief struct {
	What   string `json:"what"`
	Source string `json:"source,omitempty"` // the page or the source line that says so, "" if there is none
}

// Believer is a Cloud that tells what it assumes about its cloud.
type Believer interface{ Beliefs() []Belief }

// beliefsTitle is the heading of the table of beliefs in a driver's DESIGN.md.
const beliefsTitle = "\n## Beliefs\n"

// ReadBeliefs returns the rows of the table of beliefs in a page: what is believed, and the source
// that says so, which the table has as "none" if there is none. Drivers embed their DESIGN.md, so
// that `cloud check -v` shows the same rows that people read there.
func ReadBeliefs(page string) []Belief {
	_, rest, _ := strings.Cut(page, beliefsTitle)
	rest, _, _ = strings.Cut(rest, "\n## ")
	var list []Belief
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || strings.Trim(cells[0], "- :") == "" {
			continue
		}
		b := Belief{What: strings.TrimSpace(cells[0]), Source: strings.TrimSpace(cells[1])}
		if strings.EqualFold(b.Source, "none") {
			b.Source = ""
		}
		list = append(list, b)
	}
	if len(list) > 0 {
		list = list[1:] // the first row names the columns
	}
	return list
}
