package web

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/page"
)

//go:embed cluster.html
var clusterHTML string

var clusterTemplate = page.MustParse(clusterHTML)

// pageTime is for how long a page is served again: one of thousands of nodes takes the operator's loop a while.
const pageTime = 5 * time.Second

// mostSubnets is how many subnets the page has, those with the least room first.
const mostSubnets = 40

// facts is all that the page of a cluster is made from.
type facts struct {
	release string
	report  operator.Report
	nodes   []operator.Why
	err     error // why the operator tells nothing
}

// clusterPage is what the template shows.
type clusterPage struct {
	Release, Made string
	Banner        banner
	Nodes         int
	Key           []keyEntry
	Cells         []heatCell
	Share         int // how many nodes the last cells stand for
	Worst         []worstRow
	Subnets       []operator.Room
	MoreSubnets   int
	Report        operator.Report
	Budget        []budgetRow
	Recent        []recentLine
	page.Parts
}

type banner struct{ Tone, Title, Cause, Next string }

// keyEntry is a line of the legend: a letter, what it means, and how many there are.
type keyEntry struct {
	Class, Letter, Name, Means string
	Count                      int
}

// worstRow is a node that is not served, for people who go on from there.
type worstRow struct {
	Node, Link, Grade, Slots, Since, Cause, Next string
	Waiting                                      int
}

type budgetRow struct{ Action, Tokens, Rate, Usual, Others, Waiting, Closed string }

type recentLine struct{ When, ISO, Node, What, Error string }

// clusterPageOf returns what the page shows at now.
func clusterPageOf(known facts, now time.Time) clusterPage {
	view := clusterPage{Release: known.release, Made: now.UTC().Format(time.RFC3339), Report: known.report, Nodes: len(known.nodes), Parts: page.Live()}
	nodes := worstFirst(known.nodes)
	view.Banner = bannerOf(known, nodes, now)
	if known.err != nil {
		return view
	}
	counts := map[string]int{}
	for _, g := range nodes {
		counts[g.letter]++
	}
	for _, g := range grades {
		view.Key = append(view.Key, keyEntry{g.class, g.letter, g.name, g.means, counts[g.letter]})
	}
	view.Cells, view.Share = heatOf(nodes)
	for _, g := range nodes {
		if len(view.Worst) == mostWorst || g.grade == well || g.grade == self {
			break // what follows is no worse
		}
		view.Worst = append(view.Worst, worstRowOf(g, now))
	}
	view.Subnets = slices.Clone(known.report.Subnets)
	slices.SortStableFunc(view.Subnets, func(a, b operator.Room) int { return a.Room - b.Room })
	if more := len(view.Subnets) - mostSubnets; more > 0 {
		view.Subnets, view.MoreSubnets = view.Subnets[:mostSubnets], more
	}
	for _, b := range known.report.Budget {
		row := budgetRow{b.Action, fmt.Sprintf("%.1f", b.Tokens), fmt.Sprintf("%.2f", b.PerSecond), fmt.Sprintf("%.2f", b.Usual), fmt.Sprintf("%.2f", b.Others), fmt.Sprint(b.Waiting), ""}
		if b.Closed > 0 {
			row.Closed = fmt.Sprintf("nothing is sent for %.0f s", b.Closed)
		}
		view.Budget = append(view.Budget, row)
	}
	for _, e := range known.report.Recent {
		view.Recent = append(view.Recent, recentLineOf(e))
	}
	return view
}

// bannerOf says what a person is to know first.
func bannerOf(known facts, nodes []graded, now time.Time) banner {
	report := known.report
	switch {
	case errors.Is(known.err, operator.ErrNotLeading):
		return banner{"warn", "Waiting", "This operator does not lead, and knows nothing of the cluster.", "the Lease enipool-operator names the one that does: open its page"}
	case known.err != nil:
		return banner{"bad", "No answer", "The operator does not answer: " + known.err.Error(), "this page asks again"}
	// What keeps all nodes from being served counts before what one lacks.
	case report.Failing != "":
		return banner{"bad", "The cloud can't be described", report.Failing, "it is tried again by itself; /check tells what the operator may do in the cloud"}
	case report.OtherCluster != "":
		return banner{"bad", "Another cluster's ENIs", "Most of the nodes' ENIs are tagged with the cluster " + report.OtherCluster + ".", "see cloud.cluster in operator.yaml"}
	case len(nodes) > 0 && nodes[0].rank < slices.Index(grades, changing):
		first := nodes[0]
		b := banner{Tone: "warn", Title: "Nodes are short", Cause: fmt.Sprintf("%d pods wait for an address, %d slots are missing. The worst is %s", report.Waiting, report.Short, first.describe())}
		if report.Waiting > 0 {
			b.Tone, b.Title = "bad", "Pods wait"
		}
		b.Next = nextOf(first, now)
		return b
	case report.Observe:
		return banner{"warn", "Observing", "The operator calls nothing: operator.yaml says observe.", ""}
	}
	return banner{"good", "Ready", fmt.Sprintf("All %d nodes of this operator have what they ask for.", report.Nodes["Operator"]), ""}
}

// nextOf says when a node is served next, as far as that is known.
func nextOf(g graded, now time.Time) string {
	next := g.Next
	if len(g.Causes) > 0 && g.Causes[0].Next != nil {
		next = g.Causes[0].Next
	}
	if next == nil || !next.After(now) {
		return "at once, when there is room and a token"
	}
	return "in " + max(next.Sub(now).Round(time.Second), time.Second).String()
}

func worstRowOf(g graded, now time.Time) worstRow {
	row := worstRow{Node: g.Node, Link: "/why?node=" + url.QueryEscape(g.Node), Grade: g.name, Slots: fmt.Sprintf("%d of %d", g.Have, g.Want), Waiting: g.Waiting,
		Cause: g.cause(), Next: nextOf(g, now)}
	if g.Since != nil {
		row.Since = max(now.Sub(*g.Since), 0).Truncate(time.Second).String()
	}
	return row
}

func recentLineOf(call operator.Ended) recentLine {
	what := []string{call.What}
	switch n := max(call.Addresses, -call.Addresses); {
	case n == 1:
		what = append(what, "1 address")
	case n > 1:
		what = append(what, fmt.Sprintf("%d addresses", n))
	}
	if call.Object != "" {
		what = append(what, call.Object)
	}
	if call.From != "" {
		what = append(what, "from "+call.From)
	}
	if call.Subnet != "" {
		what = append(what, "in "+call.Subnet)
	}
	return recentLine{call.At.UTC().Format("15:04:05"), call.At.UTC().Format(time.RFC3339), call.Node, strings.Join(what, " "), call.Error}
}

// servePage shows the cluster to browsers, and others the list of pages.
func (m *Metrics) servePage(o Source) http.HandlerFunc {
	kept := page.Kept{For: pageTime}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if !page.IsWanted(r) {
			writeText(w, index)
			return
		}
		text, err := kept.Read(time.Now, func(out io.Writer) error {
			// What one reader gave up is for the next one.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
			defer cancel()
			f := facts{release: m.release}
			if f.report, f.err = o.Report(ctx); f.err == nil {
				f.nodes, f.err = o.All(ctx)
			}
			return clusterTemplate.Execute(out, clusterPageOf(f, time.Now()))
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		page.Live().Protect(w)
		_, _ = w.Write(text) // who does not get it asks again
	}
}
