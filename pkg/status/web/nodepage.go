package web

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/page"
	"github.com/enipool/enipool/pkg/status"
)

//go:embed node.html
var nodeHTML string

var nodeTemplate = page.MustParse(nodeHTML)

// ReadPool returns the node's ENIs and addresses as they are now, and the time since boot that their times count from.
// nil: nobody knows them.
type ReadPool func(context.Context) (*ipam.State, time.Duration, error)

// readTimeout is how long the page waits for the lock of the node cache. It goes without the addresses then.
const readTimeout = 2 * time.Second

// facts is all that the page of a node is made from.
type facts struct {
	release string
	newest  *status.Status // nil before the first tick
	unready string         // "" if pods can get addresses and the agent works
	hangs   bool           // newest is the loop's last word
	pool    *ipam.State    // nil if it is not known
	noPool  string         // why
	booted  time.Duration  // how long the node has been up
	samples []sizeSample
	steps   []doneStep
}

// nodePage is what the template shows.
type nodePage struct {
	Release, Node, Made string
	Banner              banner
	Cards               []eniCard
	Key                 []keyEntry
	NoPool              string
	Chart               chart
	Facts               []fact
	Steps               []stepLine
	Now                 []fact // what is under way and what pauses
	page.Parts
}

// banner says whether all is well, and if not why and what comes next.
type banner struct {
	Tone, Title, Cause, Next string
	More                     []string // other causes
}

// keyEntry is a line of the legend: a letter, what it means, and how many there are.
type keyEntry struct {
	Kind, Letter, Name, Means string
	Count                     int
}

type fact struct{ About, Text string }

type stepLine struct {
	When, ISO, What, Reason, Failed string
}

// nodePageOf returns what the page shows at now.
func nodePageOf(f facts, now time.Time) nodePage {
	p := nodePage{Release: f.release, Made: now.UTC().Format(time.RFC3339), Banner: bannerOf(f, now), NoPool: f.noPool, Chart: chartOf(f.samples, now), Parts: page.Live()}
	if s := f.newest; s != nil {
		p.Node = s.Node
		heard := *s
		if !f.hangs { // its beats are in its file's time, and not here
			heard.Heard = now
		}
		for _, line := range heard.Lines(now, status.Process{Asked: true, Running: true}) {
			about, text, _ := strings.Cut(line, ":\t")
			// The banner and what is under way have places of their own.
			if !slices.Contains([]string{"cause", "next try", "in flight", "was in flight", "agent"}, about) {
				p.Facts = append(p.Facts, fact{about, text})
			}
		}
		about := "in flight"
		if f.hangs {
			about = "was in flight"
		}
		for _, text := range s.InFlight {
			p.Now = append(p.Now, fact{about, text})
		}
		for _, text := range s.Backoff {
			p.Now = append(p.Now, fact{"backing off", text})
		}
	}
	if f.pool != nil {
		cards, counts := cardsOf(f.pool, f.booted)
		p.Cards = cards
		for _, k := range cellKinds {
			// The usual ones are explained also where there are none.
			if n := counts[k.letter]; n > 0 || slices.Index(cellKinds, k) < 4 {
				p.Key = append(p.Key, keyEntry{k.letter, strings.ToUpper(k.letter), k.name, k.means, n})
			}
		}
	}
	for _, s := range slices.Backward(f.steps) {
		p.Steps = append(p.Steps, stepLineOf(s))
	}
	return p
}

// bannerOf says what a person is to know first.
func bannerOf(f facts, now time.Time) banner {
	s := f.newest
	if s == nil {
		return banner{Tone: "warn", Title: "Starting", Cause: cmp.Or(f.unready, "no tick yet")}
	}
	b := banner{Tone: "good", Title: "Ready", Cause: s.Cause(now), Next: s.NextTry(now)}
	for _, c := range s.Causes[min(1, len(s.Causes)):] {
		b.More = append(b.More, c.What)
	}
	if _, more, is := strings.Cut(b.Cause, " (and "); is && strings.HasSuffix(more, "-o json has all)") {
		b.Cause = strings.TrimSuffix(b.Cause, " (and "+more) // they follow
	}
	switch {
	case f.unready != "":
		b.Tone, b.Title, b.Cause = "bad", "Not ready", cmp.Or(b.Cause, f.unready)
		if !strings.Contains(b.Cause, f.unready) { // the loop hangs, for one
			b.Cause = f.unready + "; before that: " + b.Cause
		}
	case b.Cause != "":
		b.Tone, b.Title = "warn", "Ready, with a cause to look into"
	default:
		b.Cause = "Pods can get addresses, and nothing is wrong."
	}
	return b
}

func stepLineOf(s doneStep) stepLine {
	what := s.Action
	if s.Count > 0 {
		what += fmt.Sprintf(" %d", s.Count)
	}
	if what += " " + s.Object; s.times > 1 {
		what += fmt.Sprintf(", %d times", s.times)
	}
	return stepLine{s.at.UTC().Format("15:04:05"), s.at.UTC().Format(time.RFC3339), what, s.Reason, s.Failed}
}

// servePage shows the node to browsers on it: the page names pods, and whoever can scrape metrics from elsewhere is not
// told those. Others get the list of pages.
func (m *Metrics) servePage(pool ReadPool) http.HandlerFunc {
	kept := page.Kept{For: time.Second}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if !page.IsWanted(r) || !page.IsLocal(r) {
			writeAnswer(w, "", index)
			return
		}
		text, err := kept.Read(time.Now, func(out io.Writer) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), readTimeout)
			defer cancel()
			return nodeTemplate.Execute(out, nodePageOf(m.facts(ctx, pool), time.Now()))
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		page.Live().Protect(w)
		_, _ = w.Write(text) // who does not get it asks again
	}
}

// facts gathers what the page is made from.
func (m *Metrics) facts(ctx context.Context, pool ReadPool) facts {
	newest := m.seen.Load()
	f := facts{release: m.release, unready: m.unready(newest), hangs: m.stalled(newest) != "", noPool: "the addresses are not known"}
	if newest != nil {
		f.newest = &newest.Status
	}
	f.samples, f.steps = m.history.copied()
	if pool != nil {
		var err error
		if f.pool, f.booted, err = pool(ctx); err != nil {
			f.pool, f.noPool = nil, err.Error()
		}
	}
	return f
}
