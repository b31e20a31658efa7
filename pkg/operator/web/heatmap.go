package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// What bounds the page however many nodes there are: the worst have a cell each, and the others share some.
const (
	mostCells  = 500
	mostShared = 200
	mostWorst  = 15
)

// grade is how well a node is served. Its class is that of its colour.
type grade struct{ class, letter, name, means string }

// The grades, the worst first.
var (
	waits    = grade{"l", "W", "pods wait", "pods of the node have no address"}
	wrong    = grade{"d", "N", "not served", "nothing is done for it, and why is said below"}
	empty    = grade{"n", "E", "no address", "it has none of the slots that it asks for"}
	short    = grade{"c", "S", "short", "it has fewer slots than it asks for"}
	changing = grade{"k", "C", "changing", "who calls the cloud for it changes"}
	self     = grade{"h", "A", "by its agent", "its agent calls the cloud itself, or it has none: how it is the operator does not know"}
	well     = grade{"f", "O", "served", "it has what it asks for"}
	grades   = []grade{waits, wrong, empty, short, changing, self, well}
)

// gradeOf tells how well a node is served.
func gradeOf(node *operator.Why) grade {
	switch {
	case node.Mode == "" || node.Mode == string(crd.Self) && node.Wrong == "":
		return self
	case node.Wrong != "":
		return wrong
	case node.Waiting > 0:
		return waits
	case node.Have == 0 && node.Want > 0:
		return empty
	case node.Have < node.Want:
		return short
	case node.Mode != string(crd.Operator):
		return changing
	}
	return well
}

// heatCell is a node, or several of one grade in a row.
type heatCell struct{ Class, Letter, Text string }

// graded is a node with its grade, as it is sorted.
type graded struct {
	*operator.Why
	grade
	rank int
}

// worstFirst sorts nodes: by grade, then those that have lacked something the longest.
func worstFirst(nodes []operator.Why) []graded {
	list := make([]graded, 0, len(nodes))
	for i := range nodes {
		g := gradeOf(&nodes[i])
		list = append(list, graded{&nodes[i], g, slices.Index(grades, g)})
	}
	slices.SortFunc(list, func(a, b graded) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), sinceOf(a).Compare(sinceOf(b)), cmp.Compare(b.Waiting, a.Waiting),
			cmp.Compare(b.Want-b.Have, a.Want-a.Have), strings.Compare(a.Node, b.Node))
	})
	return list
}

// never is later than any time: nodes of which no time is known come last.
var never = time.Unix(1<<40, 0)

func sinceOf(g graded) time.Time {
	if g.Since == nil {
		return never
	}
	return *g.Since
}

// describe tells a node in a line.
func (g graded) describe() string {
	text := g.Node + ": " + g.name
	if g.grade != self {
		text += fmt.Sprintf(", %d of %d slots", g.Have, g.Want)
	}
	if g.Waiting > 0 {
		text += fmt.Sprintf(", %d pods wait", g.Waiting)
	}
	if cause := g.cause(); cause != "" {
		text += "; " + cause
	}
	return text
}

// cause is why it is not served, "" if nobody knows.
func (g graded) cause() string {
	switch {
	case g.Wrong != "":
		return g.Wrong
	case len(g.Causes) > 0:
		return strings.TrimSuffix(g.Causes[0].Reason+": "+g.Causes[0].Message, ": ")
	}
	return g.Awaits
}

// heatOf returns the cells of nodes that are sorted: one each for the worst, and for the others one for that number of them
// that mostShared cells are enough. A cell never stands for nodes of two grades.
func heatOf(nodes []graded) (cells []heatCell, share int) {
	alone := min(len(nodes), mostCells)
	for _, g := range nodes[:alone] {
		cells = append(cells, heatCell{g.class, g.letter, g.describe()})
	}
	rest := nodes[alone:]
	share = (len(rest) + mostShared - 1) / mostShared
	for len(rest) > 0 {
		n := 1 // a last cell may stand for fewer
		for n < min(share, len(rest)) && rest[n].grade == rest[0].grade {
			n++
		}
		text := rest[0].describe()
		if n > 1 {
			text = fmt.Sprintf("%d nodes: %s, from %s to %s", n, rest[0].name, rest[0].Node, rest[n-1].Node)
		}
		cells = append(cells, heatCell{rest[0].class, rest[0].letter, text})
		rest = rest[n:]
	}
	return cells, share
}
