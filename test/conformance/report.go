package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// outcome is what became of a spec.
type outcome int

const (
	passed outcome = iota
	failed
	skipped // by itself: it wants what the cluster has not
)

// spec is one of those that were chosen, of one run.
type spec struct {
	name    string // as upstream's list of conformance specs has it
	group   string
	outcome outcome
	reason  string // why it failed or was skipped, in a line
}

// ginkgoReport is what is read of a report of ginkgo's.
type ginkgoReport struct {
	StartTime   time.Time
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		Failure                 struct{ Message string }
	}
}

// readReport returns when a run began and the specs that it chose, in the order in which they ended. Those that the
// choice left out are told from those that skipped themselves by having no reason.
func readReport(r io.Reader) (began time.Time, list []spec, err error) {
	var runs []ginkgoReport
	if err := json.NewDecoder(r).Decode(&runs); err != nil {
		return began, nil, fmt.Errorf("read ginkgo's report: %w", err)
	}
	for _, run := range runs {
		began = run.StartTime
		for _, s := range run.SpecReports {
			if s.LeafNodeType != "It" || s.State == "pending" || s.State == "skipped" && s.Failure.Message == "" {
				continue
			}
			name := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
			found := spec{name: name, group: groupOf(name), reason: reasonIn(s.Failure.Message)}
			switch s.State {
			case "passed":
				found.reason = ""
			case "skipped":
				found.outcome = skipped
			default: // failed, panicked, timedout, interrupted, aborted
				found.outcome = failed
			}
			list = append(list, found)
		}
	}
	if len(list) == 0 {
		return began, nil, errors.New("read ginkgo's report: no spec was run; the log beside it tells why")
	}
	return began, list, nil
}

// subject is the special interest group of a spec and what it is about. Of sig-network all specs are
// one group, but for those of ports of the host.
var subject = regexp.MustCompile(`^\[(sig-[a-z-]+)\] (HostPort|Pod InPlace Resize|\S+)`)

func groupOf(name string) string {
	m := subject.FindStringSubmatch(name)
	switch {
	case m == nil:
		return "others"
	case m[1] == "sig-network" && m[2] != "HostPort":
		return m[1]
	}
	return m[1] + ", " + m[2]
}

// longest is how much of a reason is shown.
const longest = 160

// reasonIn returns the first line of a failure, and of a comparison of objects what differs.
func reasonIn(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Fields(line)
	if strings.Contains(line, "diff:") {
		for other := range strings.Lines(more) {
			if strings.HasPrefix(other, "+") || strings.HasPrefix(other, "-") {
				words = append(words, strings.Fields(other)...)
			}
		}
	}
	reason := []rune(strings.Join(words, " "))
	if len(reason) > longest {
		return string(reason[:longest]) + "..."
	}
	return string(reason)
}
