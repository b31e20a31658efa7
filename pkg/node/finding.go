package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/host"
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
	// leftOut: it does not differ, it could not be compared.
	leftOut bool
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

// linesOf are the lines of what differs.
func linesOf(found []finding) []string {
	var lines []string
	for _, f := range found {
		if !f.leftOut {
			lines = append(lines, f.line)
		}
	}
	return lines
}

// LeftOutError is the error of a Check that could compare all but what is inside the network namespaces of pods.
type LeftOutError struct{ Pods int }

func (e *LeftOutError) Error() string {
	pods := fmt.Sprintf("the network namespaces of %d pods", e.Pods)
	if e.Pods == 1 {
		pods = "the network namespace of 1 pod"
	}
	return fmt.Sprintf("what is inside %s: %v; `enipoolctl pool check` as root on the node compares that too", pods, host.ErrNetnsForbidden)
}

// leftOutOf returns a LeftOutError, nil if all was compared.
func leftOutOf(found []finding) error {
	pods := 0
	for _, f := range found {
		if f.leftOut {
			pods++
		}
	}
	if pods == 0 {
		return nil
	}
	return &LeftOutError{pods}
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
