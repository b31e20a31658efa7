package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// measure is one thing measured, several times.
type measure struct {
	what    string
	command string
	unit    string
	values  []float64
}

func (m *measure) add(v float64) { m.values = append(m.values, v) }

// median is the middle value, of an even number the mean of the middle two.
func (m measure) median() float64 {
	v := slices.Sorted(slices.Values(m.values))
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// target is what the project asks of a measure: to be at most, or at
// least, so many times the reference, or without a reference so many units.
type target struct {
	of      measure
	ref     *measure
	atLeast bool
	want    float64
	shown   bool // nothing is asked, the ratio is just shown
}

// ratio is the measure in terms of the target: times the reference, or units.
func (t target) ratio() float64 {
	if t.ref == nil {
		return t.of.median()
	}
	if t.ref.median() == 0 {
		return 0
	}
	return t.of.median() / t.ref.median()
}

func (t target) reached() bool {
	if t.atLeast {
		return t.ratio() >= t.want
	}
	return t.ratio() <= t.want
}

func (t target) verdict() (want, reached string) {
	if t.shown {
		return "", ""
	}
	sign, unit := "≤", "x"
	if t.atLeast {
		sign = "≥"
	}
	if t.ref == nil {
		unit = " " + t.of.unit
	}
	return fmt.Sprintf("%s %g%s", sign, t.want, unit), map[bool]string{true: "yes", false: "NO"}[t.reached()]
}

// report collects what a run found.
type report struct {
	targets  []target
	measures []measure
}

// add takes the measures of a row, and what is asked of them.
func (r *report) add(measures []measure, targets ...target) {
	r.measures = append(r.measures, measures...)
	r.targets = append(r.targets, targets...)
}

func (r report) targetTable() [][]string {
	table := [][]string{{"what", "median", "against", "its median", "ratio", "wanted", "reached"}}
	for _, t := range r.targets {
		against, its, ratio := "-", "-", "-"
		if t.ref != nil {
			against, its, ratio = t.ref.what, number(t.ref.median(), t.ref.unit), fmt.Sprintf("%.2fx", t.ratio())
		}
		want, reached := t.verdict()
		table = append(table, []string{t.of.what, number(t.of.median(), t.of.unit), against, its, ratio, cmp.Or(want, "-"), cmp.Or(reached, "-")})
	}
	return table
}

func (r report) measureTable() [][]string {
	table := [][]string{{"what", "median", "min .. max", "n", "command"}}
	for _, m := range r.measures {
		if len(m.values) == 0 {
			continue
		}
		span := number(slices.Min(m.values), "") + " .. " + number(slices.Max(m.values), m.unit)
		table = append(table, []string{m.what, number(m.median(), m.unit), span, fmt.Sprint(len(m.values)), "`" + m.command + "`"})
	}
	return table
}

// number shows three digits or all whole ones.
func number(v float64, unit string) string {
	digits := 2
	switch {
	case v >= 100:
		digits = 0
	case v >= 10:
		digits = 1
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, v, unit))
}
