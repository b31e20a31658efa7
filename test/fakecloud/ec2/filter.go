package ec2

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// filter is one of a describing request. An object passes if one of its values of
// the name matches one of the filter's.
type filter struct {
	name   string
	values []*regexp.Regexp
}

// filters reads the filters of a request, of the names that the action has;
// "tag:" stands for those of any tag.
func (q *query) filters(e *Endpoint, names ...string) []filter {
	var list []filter
	for i, name := range q.list("Filter", ".Name") {
		ok := slices.Contains(names, name) || strings.HasPrefix(name, "tag:") && slices.Contains(names, "tag:")
		if !ok && e.o.Quirks.FiltersFail {
			q.fail("InternalError", "The filter '%s' has not been implemented", name)
		}
		if !ok {
			q.fail("InvalidParameterValue", "The filter '%s' is invalid", name)
		}
		f := filter{name: name}
		for _, v := range q.list(fmt.Sprintf("Filter.%d.Value", i+1), "") {
			f.values = append(f.values, wildcard(v))
		}
		if len(f.values) == 0 {
			q.fail("InvalidParameterValue", "The filter '%s' has no value", name)
		}
		list = append(list, f)
	}
	return list
}

// wildcard makes a pattern of a value, in which * stands for any characters and ?
// for one; \ takes their meaning away.
func wildcard(v string) *regexp.Regexp {
	var b strings.Builder
	escaped := false
	for _, r := range v {
		switch {
		case escaped:
			b.WriteString(regexp.QuoteMeta(string(r)))
			escaped = false
		case r == '\\':
			escaped = true
		case r == '*':
			b.WriteString(".*")
		case r == '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return regexp.MustCompile("(?s)^" + b.String() + "$")
}

// pass tells whether an object passes all filters; of gives its values of a name.
func pass(filters []filter, tags map[string]string, of func(name string) []string) bool {
	for _, f := range filters {
		var values []string
		switch tag, isTag := strings.CutPrefix(f.name, "tag:"); {
		case isTag:
			if v, ok := tags[tag]; ok {
				values = []string{v}
			}
		case f.name == "tag-key":
			for key := range tags {
				values = append(values, key)
			}
		default:
			values = of(f.name)
		}
		if !slices.ContainsFunc(values, f.matches) {
			return false
		}
	}
	return true
}

func (f filter) matches(v string) bool {
	return slices.ContainsFunc(f.values, func(p *regexp.Regexp) bool { return p.MatchString(v) })
}

// paging is which part of a list a request wants.
type paging struct {
	size int
	next string
}

// The sizes of a page. Most actions take 5 to 1000.
const (
	leastPage = 5
	mostPage  = 1000
)

// paging reads which part is wanted; ids are those that are named in the request.
func (q *query) paging(ids []string, most int) paging {
	asked := q.has("MaxResults")
	p := paging{size: q.number("MaxResults", 0), next: q.text("NextToken")}
	switch {
	case !asked:
		p.size = most
	case p.size < leastPage || p.size > most:
		q.fail("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.",
			p.size, leastPage, most)
	case len(ids) > 0:
		q.fail("InvalidParameterCombination", "The parameter maxResults cannot be used with ids in the same request")
	}
	return p
}

// maxPages is how many tokens for further pages are remembered.
const maxPages = 1000

// page cuts what the request wants out of the list that load makes. What follows is
// kept as it is, so that pages of one list fit together.
func page[T any](e *Endpoint, p paging, load func() ([]T, error)) (list []T, next string, err error) {
	if p.next != "" {
		e.mu.Lock()
		rest, ok := e.pages[p.next].([]T)
		e.mu.Unlock()
		if !ok {
			return nil, "", refuse("InvalidNextToken", "The specified NextToken is not valid.")
		}
		list = rest
	} else if list, err = load(); err != nil {
		return nil, "", err
	}
	if len(list) <= p.size || e.o.Quirks.NoPaging {
		return list, "", nil
	}
	return list[:p.size], e.remember(list[p.size:]), nil
}

// remember keeps the rest of a list, and returns the token for it.
func (e *Endpoint) remember(rest any) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids++
	token := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, "page ", e.ids)))
	e.pages[token] = rest
	e.order = append(e.order, token)
	if len(e.order) > maxPages {
		delete(e.pages, e.order[0])
		e.order = e.order[1:]
	}
	return token
}
