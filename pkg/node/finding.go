package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// finding is something that does not agree.
type finding struct {
	line    string // for people
	what    string // what the next look knows it by: the line, without what may change
	subject string // the address or the link that it is about, "" for none
	// since is when the pool last changed that address, or the address of that link's pod:
	// with another time it is another pod.
	since time.Duration
}

// plainFindings are about no single pod.
func plainFindings(lines []string) []finding {
	var found []finding
	for _, line := range lines {
		found = append(found, finding{line: line, what: line})
	}
	return found
}

// findingsOf is Lines with what each line is about.
func findingsOf(n netconf.Node, before, after string) []finding {
	lines := n.Lines(before)
	found := make([]finding, len(lines))
	for i, subject := range subjectsOf(n) {
		found[i] = finding{line: lines[i] + after, what: lines[i], subject: strings.TrimPrefix(subject, sourceRule)}
	}
	return found
}

func linesOf(found []finding) []string {
	var lines []string
	for _, f := range found {
		lines = append(lines, f.line)
	}
	return lines
}

// instances tells since when each address of the pool is as it is, and each pod's link by
// its pod's address.
func (n Node) instances(ctx context.Context) (map[string]time.Duration, error) {
	since := map[string]time.Duration{}
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		for _, a := range s.Addresses {
			since[a.Addr.String()] = a.Since
			if a.Owner != nil {
				since[netconf.HostDevice(a.Owner.Key)] = a.Since
			}
		}
		return nil
	})
	return since, err
}

// stable returns what was found of addresses and links that stayed whose they were from
// before the look until after it.
func stable(found []finding, was, is map[string]time.Duration) []finding {
	var kept []finding
	for _, f := range found {
		from, before := was[f.subject]
		to, after := is[f.subject]
		if from != to || before != after || f.since != 0 && f.since != to {
			continue
		}
		f.since = to
		kept = append(kept, f)
	}
	return kept
}

// confirmFindings returns what was found by both looks.
func confirmFindings(first, second []finding) []finding {
	return slices.DeleteFunc(second, func(f finding) bool {
		return !slices.ContainsFunc(first, func(was finding) bool {
			return was.what == f.what && was.subject == f.subject && was.since == f.since
		})
	})
}
