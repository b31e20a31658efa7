package report

import (
	"fmt"
	"strings"
	"unicode"
)

// fact is a line about what was played.
type fact struct{ About, Text string }

// facts says what was played.
func (r Report) facts() []fact {
	list := []fact{
		{"load", r.Load.text()},
		{"machine", r.Machine.text()},
		{"subnets", subnetsText(r.Subnets)},
		{"cloud", r.Cloud.text()},
		{"agent", r.agentText()},
		{"seed", fmt.Sprint(r.Seed)},
	}
	if r.Release != "" {
		list = append(list, fact{"enipool", r.Release})
	}
	return list
}

func (l Load) text() string {
	text := span(l.Duration) + " of " + number(l.Nodes, "node", "nodes") + " with " + number(l.Pods, "pod", "pods")
	if l.Name == "" {
		return text
	}
	return l.Name + ": " + text
}

func (m Machine) text() string {
	text := number(m.ENIs, "ENI", "ENIs") + " of " + number(m.IPsPerENI, "address", "addresses")
	if m.Name != "" {
		text = m.Name + ": " + text
	}
	if m.MaxPods > 0 {
		text += ", at most " + number(m.MaxPods, "pod", "pods")
	}
	return text
}

// fewSubnets are shown one by one.
const fewSubnets = 4

func subnetsText(list []Subnet) string {
	if len(list) == 0 {
		return "none"
	}
	var words []string
	for _, s := range list[:min(len(list), fewSubnets)] {
		word := s.ID
		if s.CIDR.IsValid() && s.CIDR.String() != s.ID {
			word = strings.TrimSpace(word + " " + s.CIDR.String())
		}
		if s.Taken > 0 {
			word += fmt.Sprintf(" (%s of others)", number(s.Taken, "address", "addresses"))
		}
		words = append(words, word)
	}
	if more := len(list) - fewSubnets; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}

func (c Cloud) text() string {
	text := "calls take no time"
	if parts := c.times(); len(parts) > 0 {
		text = "calls take: " + strings.Join(parts, ", ")
	}
	if c.Mutating != nil || c.Describing != nil {
		text += "; " + c.Mutating.text("change", "changes") + "; " + c.Describing.text("look", "looks")
	}
	if c.MaxENIs > 0 {
		text += "; at most " + number(c.MaxENIs, "ENI", "ENIs")
	}
	return text
}

// times says how long calls take, together of those that take equally long.
func (c Cloud) times() []string {
	var order []string
	calls := map[string][]string{}
	for _, l := range c.Latency {
		took := between(l)
		if calls[took] == nil {
			order = append(order, took)
		}
		calls[took] = append(calls[took], l.Call)
	}
	for i, took := range order {
		order[i] = strings.Join(calls[took], " ") + " " + took
	}
	return order
}

func between(l Latency) string {
	least, most := span(l.Least), span(l.Most)
	if least == most {
		return least
	}
	return least + "-" + most
}

func (r *Rate) text(one, many string) string {
	if r == nil {
		return "any number of " + many
	}
	return fmt.Sprintf("%s at once, then one each %s", number(r.Burst, one, many), span(r.Every))
}

func (r Report) agentText() string {
	knows := "knows of a pod when its ADD comes"
	if r.Lead > 0 {
		knows = "knows of a pod " + span(r.Lead) + " before its ADD"
	}
	return knows + ", which waits up to " + span(r.Wait) + " for an address"
}

// plain makes text fit for a line of a terminal, whatever it holds.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, text)
}
