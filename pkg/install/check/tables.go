package check

import (
	"slices"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/netconf"
)

// checkTables names routes and rules of others that use the numbers of enipool's routing tables.
// enipool replaces none of them: they would stay in the way of its own.
func checkTables(tree install.Tree, needs Needs) []install.Line {
	h, err := host.New()
	if err != nil {
		return []install.Line{notTried("look for routes of others in enipool's routing tables", err)}
	}
	defer h.Close()
	routes, err := h.OthersRoutes()
	if err != nil {
		return []install.Line{notTried("look for routes of others in enipool's routing tables", err)}
	}
	rules, err := h.OthersRules()
	if err != nil {
		return []install.Line{notTried("look for rules of others for enipool's routing tables", err)}
	}
	var lines []install.Line
	for _, r := range routes {
		what := needs.severityBeside(tree)
		// Of the pods' table only host routes count. A table is an ENI's from the day the
		// node has an ENI of that index, and only the cloud knows how many it may have.
		if r.Table == netconf.PodsTable && !r.Dst.IsSingleIP() || r.Table > netconf.Table(mostENIs) {
			what = install.Warning
		}
		lines = append(lines, install.Linef(what, "routing table %d, which is enipool's, holds a route of others, %s: pods' packets may leave by it; %s", r.Table, r, r.Remedy()))
	}
	for _, r := range rules {
		lines = append(lines, install.Linef(install.Warning, "a rule of others leads to routing table %d, which is enipool's: %s; who made it finds enipool's routes there, "+
			"and has to use a table of its own", r.Table, r))
	}
	if !slices.ContainsFunc(lines, func(l install.Line) bool { return l.What != install.OK }) {
		lines = append(lines, okLine("nobody else uses the routing tables from %d on", netconf.PodsTable))
	}
	return lines
}

// mostENIs is more than instances of any cloud carry in practice, and below the numbers
// that people like to give their own tables.
const mostENIs = 16
