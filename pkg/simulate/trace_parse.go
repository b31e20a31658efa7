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

	err := p.readHeader()
	for err == nil {
		err = p.readData()
	}
	if err != io.EOF {
		return Trace{}, err
	}
	t := Trace{Name: name, End: p.clock.now}
	for _, node := range slices.Sorted(maps.Keys(p.nodes)) {
		t.pods = append(t.pods, p.nodes[node].pods)
		if p.hasColumn("node") {
			t.Nodes = append(t.Nodes, node)
		}
	}
	return t, nil
}

// readHeader reads which columns there are.
func (p *traceParser) readHeader() error {
	const formats = "time,pods or time,event,pod, and node where nodes have names"
	record, err := p.nextRecord()
	if err == io.EOF {
		return p.badValue("header", "", formats)
	} else if err != nil {
		return err
	}
	p.column = map[string]int{}
	for i, name := range record {
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains([]string{"time", "pods", "event", "pod", "node"}, name):
			return p.badValue("column", name, "one of "+formats)
		case p.hasColumn(name):
			return p.badValue("column", name, "there once")
		}
		p.column[name] = i
	}
	if !p.hasColumn("time") || p.hasColumn("pods") == p.hasColumn("event") || p.hasColumn("event") != p.hasColumn("pod") {
		return p.badValue("header", strings.Join(record, ","), formats)
	}
	return nil
}

// readData reads a line of data. io.EOF is the end of all.
func (p *traceParser) readData() error {
	record, err := p.nextRecord()
	if err == io.EOF && len(p.nodes) == 0 {
		return fmt.Errorf("%s:%d: no data: must be at least one line after the header", p.name, p.line)
	} else if err != nil {
		return err
	}
	if len(record) != len(p.column) {
		return p.badValue("line", strings.Join(record, ","), fmt.Sprintf("%d fields, as in the header", len(p.column)))
	}
	at := p.fieldOf(record, "time")
	if want := p.clock.moveTo(at); want != "" {
		return p.badValue("time", at, want)
	}
	n, err := p.nodeOf(record)
	if err != nil {
		return err
	}
	if p.hasColumn("pods") {
		return p.applyCount(n, record)
	}
	return p.applyEvent(n, record)
}

// nextRecord is the next line that says something. io.EOF is the end of a file that is
// not too large.
func (p *traceParser) nextRecord() ([]string, error) {
	for {
		record, err := p.csv.Read()
		var wrong *csv.ParseError
		switch {
		// First, as a file that is cut off at the limit ends within a line, which is not what is wrong.
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

// nodeOf is the node that the line is about; all lines without names are about one.
func (p *traceParser) nodeOf(record []string) (*traceNode, error) {
	name := ""
	if p.hasColumn("node") {
		if name = p.fieldOf(record, "node"); name == "" {
			return nil, p.badValue("node", name, "a name")
		}
	}
	n := p.nodes[name]
	if n == nil {
		if len(p.nodes) == mostNodes {
			return nil, p.badValue("node", name, fmt.Sprintf("one of the %d before: more are not played", mostNodes))
		}
		n = &traceNode{counted: -1, running: map[string]int{}}
		p.nodes[strings.Clone(name)] = n
	}
	return n, nil
}

// applyCount lets pods come or go until there are as many as the line says.
func (p *traceParser) applyCount(n *traceNode, record []string) error {
	text := p.fieldOf(record, "pods")
	count, err := strconv.ParseUint(text, 10, 32)
	if err != nil || count > mostCount {
		return p.badValue("pods", text, fmt.Sprintf("a whole number from 0 to %d", mostCount))
	}
	if n.counted == p.clock.now {
		return p.badValue("time", p.fieldOf(record, "time"), "later than where the node was counted before")
	}
	n.counted = p.clock.now
	for ; len(n.pods)-n.ended > int(count); n.ended++ {
		n.endPod(n.ended, p.clock.now)
	}
	for err = nil; err == nil && len(n.pods)-n.ended < int(count); {
		err = p.startPod(n)
	}
	return err
}

// applyEvent starts or ends the pod that the line names.
func (p *traceParser) applyEvent(n *traceNode, record []string) error {
	event, pod := p.fieldOf(record, "event"), p.fieldOf(record, "pod")
	i, runs := n.running[pod]
	switch {
	case pod == "":
		return p.badValue("pod", pod, "a name")
	case event != "add" && event != "delete":
		return p.badValue("event", event, "add or delete")
	case event == "add" && runs:
		return p.badValue("pod", pod, "deleted before it is added again")
	case event == "delete" && !runs:
		return p.badValue("pod", pod, "added before it is deleted")
	case event == "add":
		// A clone, or the map would keep the whole line that the name is part of.
		n.running[strings.Clone(pod)] = len(n.pods)
		return p.startPod(n)
	}
	n.endPod(i, p.clock.now)
	delete(n.running, pod)
	return nil
}

func (p *traceParser) startPod(n *traceNode) error {
	if p.pods == mostTracePods {
		return fmt.Errorf("%s:%d: too many pods: must be at most %d in all of the trace", p.name, p.line, mostTracePods)
	}
	p.pods++
	n.pods = append(n.pods, Pod{Start: p.clock.now, End: forever})
	return nil
}

func (n *traceNode) endPod(i int, now time.Duration) {
	n.pods[i].End = max(now, n.pods[i].Start+shortest)
}

func (p *traceParser) hasColumn(column string) bool {
	_, ok := p.column[column]
	return ok
}

func (p *traceParser) fieldOf(record []string, column string) string {
	return strings.TrimSpace(record[p.column[column]])
}

// badValue is the error of a value. It is one line and not endless, whatever the value.
func (p *traceParser) badValue(what, value, want string) error {
	return fmt.Errorf("%s:%d: %s %.80q: must be %s", p.name, p.line, what, value, want)
}
