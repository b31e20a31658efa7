package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// fact is a line about what was played.
type fact struct{ About, Text string }

// facts says what was played.
func (r Report) facts() []fact {
	list := []fact{
		{"load", r.Load.text()},
		{"instance", r.Instance.text()},
		{"subnets", subnetsText(r.Subnets)},
		{"cloud", r.Cloud.text()},
	}
	if len(r.Cloud.Prices) > 0 {
		list = append(list, fact{"calls", r.Cloud.priceText()})
	}
	if len(r.Cloud.Buckets) > 0 {
		list = append(list, fact{"limits", r.Cloud.bucketText()})
	}
	list = append(list, fact{"agent", r.agentText()})
	if share := r.share(); share > 0 {
		list = append(list, fact{"operator", fmt.Sprintf("takes %d%% of each limit, and calls for all nodes; the API server takes no time", share)})
	}
	list = append(list, fact{"seed", fmt.Sprint(r.Seed)})
	if r.Release != "" {
		list = append(list, fact{"enipool", r.Release})
	}
	return list
}

// share is what an operator took of the limits in percent, 0 where none was played.
func (r Report) share() (most int) {
	for _, one := range r.Results {
		most = max(most, one.Share)
	}
	return most
}

func (l Load) text() string {
	text := durationText(l.Duration) + " of " + numberOf(l.Nodes, "node", "nodes") + " with " + numberOf(l.Pods, "pod", "pods")
	if l.Name == "" {
		return text
	}
	return l.Name + ": " + text
}

func (i Instance) text() string {
	text := numberOf(i.ENIs, "ENI", "ENIs") + " of " + numberOf(i.IPsPerENI, "address", "addresses")
	if i.Prefix > 1 {
		text += fmt.Sprintf(" in prefixes of %d", i.Prefix)
	}
	if i.Name != "" {
		text = i.Name + ": " + text
	}
	if i.MaxPods > 0 {
		text += ", at most " + numberOf(i.MaxPods, "pod", "pods")
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
		// A subnet that was given without an ID has its CIDR for one.
		if s.CIDR.IsValid() && s.CIDR.String() != s.ID {
			word = strings.TrimSpace(word + " " + s.CIDR.String())
		}
		if s.Taken > 0 {
			word += fmt.Sprintf(" (%s of others)", numberOf(s.Taken, "address", "addresses"))
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
		if len(c.Prices) > 0 {
			text += "; of each kind of request"
		}
	}
	if c.MaxENIs > 0 {
		text += "; at most " + numberOf(c.MaxENIs, "ENI", "ENIs")
	}
	return text
}

// priceText says of what requests calls are made.
func (c Cloud) priceText() string {
	var words []string
	for _, p := range c.Prices {
		word := p.Call + " is"
		if !slices.ContainsFunc(p.Requests, func(r Request) bool { return !r.Describes }) {
			word += " at first" // later looks ask for less
		}
		for i, r := range p.Requests {
			if i > 0 {
				word += ","
			}
			word += " " + r.text()
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

func (r Request) text() string {
	text := r.Name
	if r.Count > 1 {
		text = fmt.Sprintf("%d %s", r.Count, text)
	}
	if r.Each > 0 {
		text += " for each " + numberOf(r.Each, "address", "addresses")
	}
	return text
}

// bucketText says how many requests pass of those that have other limits, together of
// those that have the same.
func (c Cloud) bucketText() string {
	var order []Rate
	names := map[Rate][]string{}
	for _, b := range c.Buckets {
		if names[b.Rate] == nil {
			order = append(order, b.Rate)
		}
		names[b.Rate] = append(names[b.Rate], b.Request)
	}
	var words []string
	for _, r := range order {
		words = append(words, strings.Join(names[r], " ")+" "+r.text("request", "requests"))
	}
	return strings.Join(words, "; ")
}

// times says how long calls take, together of those that take equally long.
func (c Cloud) times() []string {
	var order []string
	calls := map[string][]string{}
	for _, l := range c.Latency {
		took := rangeText(l)
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

func rangeText(l Latency) string {
	least, most := durationText(l.Least), durationText(l.Most)
	if least == most {
		return least
	}
	return least + "-" + most
}

func (r *Rate) text(one, many string) string {
	if r == nil {
		return "any number of " + many
	}
	return fmt.Sprintf("%s at once, then one each %s", numberOf(r.Burst, one, many), durationText(r.Every))
}

func (r Report) agentText() string {
	knows := "knows of a pod when its ADD comes"
	if r.Lead > 0 {
		knows = "knows of a pod " + durationText(r.Lead) + " before its ADD"
	}
	return knows + ", which waits up to " + durationText(r.Wait) + " for an address"
}

// printable makes text fit for a line of a terminal, whatever it holds.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, text)
}
