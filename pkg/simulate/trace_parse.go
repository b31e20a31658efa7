package simulate

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	mostTraceBytes = 128 << 20 // some 5 million lines
	mostTracePods  = 5_000_000
	mostCount      = 1 << 16 // pods of one node at once
)

// traceParser reads the lines of a trace.
type traceParser struct {
	name   string
	bytes  io.LimitedReader
	csv    *csv.Reader
	line   int            // where we are
	column map[string]int // where each is in a line
	clock  traceClock
	nodes  map[string]*traceNode
	pods   int // of all nodes
}

// traceNode is a node of a trace.
type traceNode struct {
	pods    []Pod
	ended   int            // counts: how many of pods have, as the first to start is the first to end
	counted time.Duration  // counts: when that was, or before the start
	running map[string]int // events: where in pods
}

// ParseTrace reads a trace of the given name: CSV with a header line. There are two
// formats, told apart by the columns, which stand in any order:
//
//   - time,pods: how many pods there are from then on. When there are fewer, those
//     that have run longest have ended.
//   - time,event,pod: event is add or delete, pod a name. A name can be added again
//     after it was deleted.
//
// In both a column node may say which node the line is about; before its first line
// a node has no pods. A time is in seconds since the start, with at most three
// decimals, or RFC 3339 on all lines: then the first line is the start. Lines that
// start with # and empty ones are ignored.
//
// An error is one line: name:LINE: what is wrong and what is right.
func ParseTrace(name string, r io.Reader) (Trace, error) {
	p := &traceParser{name: name, line: 1, nodes: map[string]*traceNode{}}
	p.bytes = io.LimitedReader{R: r, N: mostTraceBytes + 1}
	text, bom := bufio.NewReader(&p.bytes), []byte("\ufeff")
	if start, _ := text.Peek(len(bom)); bytes.Equal(start, bom) {
		text.Discard(len(bom))
	}
	p.csv = csv.NewReader(text)
	p.csv.Comment, p.csv.FieldsPerRecord, p.csv.TrimLeadingSpace, p.csv.ReuseRecord = '#', -1, true, true

	err := p.header()
	for err == nil {
		err = p.data()
	}
	if err != io.EOF {
		return Trace{}, err
	}
	t := Trace{Name: name, End: p.clock.now}
	for _, node := range slices.Sorted(maps.Keys(p.nodes)) {
		t.pods = append(t.pods, p.nodes[node].pods)
		if p.has("node") {
			t.Nodes = append(t.Nodes, node)
		}
	}
	return t, nil
}

// header reads which columns there are.
func (p *traceParser) header() error {
	const formats = "time,pods or time,event,pod, and node where nodes have names"
	record, err := p.next()
	if err == io.EOF {
		return p.bad("header", "", formats)
	} else if err != nil {
		return err
	}
	p.column = map[string]int{}
	for i, name := range record {
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains([]string{"time", "pods", "event", "pod", "node"}, name):
			return p.bad("column", name, "one of "+formats)
		case p.has(name):
			return p.bad("column", name, "there once")
		}
		p.column[name] = i
	}
	if !p.has("time") || p.has("pods") == p.has("event") || p.has("event") != p.has("pod") {
		return p.bad("header", strings.Join(record, ","), formats)
	}
	return nil
}

// data reads a line of data. io.EOF is the end of all.
func (p *traceParser) data() error {
	record, err := p.next()
	if err == io.EOF && len(p.nodes) == 0 {
		return fmt.Errorf("%s:%d: no data: must be at least one line after the header", p.name, p.line)
	} else if err != nil {
		return err
	}
	if len(record) != len(p.column) {
		return p.bad("line", strings.Join(record, ","), fmt.Sprintf("%d fields, as in the header", len(p.column)))
	}
	at := p.field(record, "time")
	if want := p.clock.move(at); want != "" {
		return p.bad("time", at, want)
	}
	n, err := p.node(record)
	if err != nil {
		return err
	}
	if p.has("pods") {
		return p.count(n, record)
	}
	return p.event(n, record)
}

// next is the next line that says something. io.EOF is the end of a file that is
// not too large.
func (p *traceParser) next() ([]string, error) {
	for {
		record, err := p.csv.Read()
		var wrong *csv.ParseError
		switch {
		case p.bytes.N == 0:
			return nil, fmt.Errorf("%s:%d: the file is too large: must be at most %d MiB", p.name, p.line, mostTraceBytes>>20)
		case errors.As(err, &wrong):
			p.line = wrong.Line
			return nil, fmt.Errorf("%s:%d: %w: must be fields between commas, all of a field in quotes or without any", p.name, p.line, wrong.Err)
		case err == io.EOF:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%s:%d: read on: %w", p.name, p.line, err)
		}
		p.line, _ = p.csv.FieldPos(0)
		if len(record) > 1 || strings.TrimSpace(record[0]) != "" {
			return record, nil
		}
	}
}

// node is the node that the line is about; all lines without names are about one.
func (p *traceParser) node(record []string) (*traceNode, error) {
	name := ""
	if p.has("node") {
		if name = p.field(record, "node"); name == "" {
			return nil, p.bad("node", name, "a name")
		}
	}
	n := p.nodes[name]
	if n == nil {
		if len(p.nodes) == mostNodes {
			return nil, p.bad("node", name, fmt.Sprintf("one of the %d before: more are not played", mostNodes))
		}
		n = &traceNode{counted: -1, running: map[string]int{}}
		p.nodes[strings.Clone(name)] = n
	}
	return n, nil
}

// count lets pods come or go until there are as many as the line says.
func (p *traceParser) count(n *traceNode, record []string) error {
	text := p.field(record, "pods")
	count, err := strconv.ParseUint(text, 10, 32)
	if err != nil || count > mostCount {
		return p.bad("pods", text, fmt.Sprintf("a whole number from 0 to %d", mostCount))
	}
	if n.counted == p.clock.now {
		return p.bad("time", p.field(record, "time"), "later than where the node was counted before")
	}
	n.counted = p.clock.now
	for ; len(n.pods)-n.ended > int(count); n.ended++ {
		n.end(n.ended, p.clock.now)
	}
	for err = nil; err == nil && len(n.pods)-n.ended < int(count); {
		err = p.start(n)
	}
	return err
}

// event starts or ends the pod that the line names.
func (p *traceParser) event(n *traceNode, record []string) error {
	event, pod := p.field(record, "event"), p.field(record, "pod")
	i, runs := n.running[pod]
	switch {
	case pod == "":
		return p.bad("pod", pod, "a name")
	case event != "add" && event != "delete":
		return p.bad("event", event, "add or delete")
	case event == "add" && runs:
		return p.bad("pod", pod, "deleted before it is added again")
	case event == "delete" && !runs:
		return p.bad("pod", pod, "added before it is deleted")
	case event == "add":
		n.running[strings.Clone(pod)] = len(n.pods)
		return p.start(n)
	}
	n.end(i, p.clock.now)
	delete(n.running, pod)
	return nil
}

func (p *traceParser) start(n *traceNode) error {
	if p.pods == mostTracePods {
		return fmt.Errorf("%s:%d: too many pods: must be at most %d in all of the trace", p.name, p.line, mostTracePods)
	}
	p.pods++
	n.pods = append(n.pods, Pod{Start: p.clock.now, End: forever})
	return nil
}

func (n *traceNode) end(i int, now time.Duration) {
	n.pods[i].End = max(now, n.pods[i].Start+shortest)
}

func (p *traceParser) has(column string) bool {
	_, ok := p.column[column]
	return ok
}

func (p *traceParser) field(record []string, column string) string {
	return strings.TrimSpace(record[p.column[column]])
}

// bad is the error of a value. It is one line and not endless, whatever the value.
func (p *traceParser) bad(what, value, want string) error {
	return fmt.Errorf("%s:%d: %s %.80q: must be %s", p.name, p.line, what, value, want)
}
