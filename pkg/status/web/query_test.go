package web

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/status"
)

// exports is what can be asked for: the label values of each metric, by label.
type exports map[string]map[string][]string

var (
	sample  = regexp.MustCompile(`^([a-zA-Z_]\w*)(?:\{(.*)\})?$`)
	matcher = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
)

// tellingAll are the metrics of an agent with something to tell of everything.
func tellingAll() *Metrics {
	m := New("v1", cloud.Outcomes()...)
	m.Observe(status.Status{ENILimit: 4, Exhausted: "subnet-a", Watched: true, Synced: true, Health: health.Report{Reason: health.AddressesAvailable},
		FastPath: &status.FastPath{Off: []string{"IPVS serves addresses"}}})
	return m
}

// exported is all that an agent with something to tell exports.
func exported(t testing.TB) exports {
	all := exports{}
	for series := range scrape(t, tellingAll()) {
		parts := sample.FindStringSubmatch(series)
		if parts == nil {
			t.Fatalf("what is %q?", series)
		}
		if all[parts[1]] == nil {
			all[parts[1]] = map[string][]string{}
		}
		for _, l := range matcher.FindAllStringSubmatch(parts[2], -1) {
			all[parts[1]][l[1]] = append(all[parts[1]][l[1]], l[3])
		}
	}
	return all
}

// target are the labels that a scrape adds, and cluster, which people add who gather several.
var target = []string{"job", "instance", "cluster"}

// The parts of a query, in the order in which they are taken out of it.
var (
	selector = regexp.MustCompile(`([a-zA-Z_]\w*)\{([^}]*)\}`)
	window   = regexp.MustCompile(`\[(?:\d+[smhd]|\$__rate_interval)\]`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right) ?\(([^()]*)\)`)
	call     = regexp.MustCompile(`\b([a-z_]\w*)\s*\(`)
	word     = regexp.MustCompile(`[a-zA-Z_]\w*`)
	digits   = regexp.MustCompile(`\b\d+(\.\d+)?(e\d+)?\b`)
)

var (
	functions = strings.Fields("sum max min count rate increase histogram_quantile max_over_time vector label_values topk clamp_min")
	operators = strings.Fields("and or unless bool")
)

// wrong returns what is wrong with a query: metrics and labels that are not
// exported, values that no series has, functions that nobody knows here.
func (e exports) wrong(query string) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	labels := slices.Clone(target)
	use := func(metric string) {
		if e[metric] == nil {
			say("metric %s is not exported", metric)
		}
		labels = slices.AppendSeq(labels, maps.Keys(e[metric]))
	}
	rest := selector.ReplaceAllStringFunc(query, func(s string) string {
		parts := selector.FindStringSubmatch(s)
		use(parts[1])
		for _, m := range matcher.FindAllStringSubmatch(parts[2], -1) {
			values, own := e[parts[1]][m[1]]
			switch {
			case slices.Contains(target, m[1]):
			case !own:
				say("%s has no label %s", parts[1], m[1])
			case (m[2] == "=" || m[2] == "!=") && !slices.Contains(values, m[3]):
				say("%s is never %q in %s", m[1], m[3], parts[1])
			}
		}
		if left := strings.Trim(matcher.ReplaceAllString(parts[2], ""), ", "); left != "" {
			say("selector %s: what is %q?", s, left)
		}
		return " "
	})
	var groups []string
	rest = grouping.ReplaceAllStringFunc(window.ReplaceAllString(rest, " "), func(s string) string {
		groups = append(groups, word.FindAllString(grouping.FindStringSubmatch(s)[1], -1)...)
		return " "
	})
	rest = call.ReplaceAllStringFunc(rest, func(s string) string {
		if name := call.FindStringSubmatch(s)[1]; !slices.Contains(functions, name) && !slices.Contains(operators, name) {
			say("function %s is not known", name)
		}
		return "("
	})
	for _, name := range word.FindAllString(digits.ReplaceAllString(rest, " "), -1) {
		if !slices.Contains(operators, name) {
			use(name)
		}
	}
	for _, l := range groups {
		if !slices.Contains(labels, l) {
			say("no metric of the query has the label %s", l)
		}
	}
	if strings.Count(query, "(") != strings.Count(query, ")") {
		say("parentheses don't match")
	}
	return list
}

func TestAWrongQueryIsFound(t *testing.T) {
	e := exported(t)
	for _, tt := range []struct{ query, want string }{
		{`sum by (job, state) (enipool_addresses) > 0`, ""},
		{`increase(enipool_cloud_calls_total{outcome="ok",instance=~"a"}[5m]) > 0.5 * vector(1e6)`, ""},
		{`enipool_adresses > 0`, "metric enipool_adresses is not exported"},
		{`enipool_adresses{state="free"} > 0`, "metric enipool_adresses is not exported"},
		{`enipool_addresses{state="fre"}`, `state is never "fre" in enipool_addresses`},
		{`enipool_addresses{kind="free"}`, "enipool_addresses has no label kind"},
		{`enipool_addresses{state=free}`, `what is "state=free"?`},
		{`sum by (op) (enipool_addresses)`, "no metric of the query has the label op"},
		{`rat(enipool_steps_total[5m])`, "function rat is not known"},
		{`sum(enipool_addresses`, "parentheses don't match"},
		{`enipool_tick_seconds`, "metric enipool_tick_seconds is not exported"},
	} {
		got := strings.Join(e.wrong(tt.query), "; ")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.query, got, tt.want)
		}
	}
}
