package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// query is a request's parameters. It remembers what was asked for, since EC2
// refuses parameters that it does not know, and the first thing that is wrong.
type query struct {
	form   url.Values
	asked  map[string]bool
	err    error
	token  string // of idempotency
	bucket string // one more to count in
}

func newQuery(form url.Values) *query {
	return &query{form: form, asked: map[string]bool{"Action": true, "Version": true}}
}

// fail notes what is wrong, unless something else was before.
func (q *query) fail(code, format string, args ...any) {
	if q.err == nil {
		q.err = refuse(code, format, args...)
	}
}

// failed returns what is wrong with the request.
func (q *query) failed() error {
	for _, name := range slices.Sorted(maps.Keys(q.form)) {
		if !q.asked[name] {
			return refuse("UnknownParameter", "The parameter %s is not recognized", name)
		}
	}
	return q.err
}

// params returns what calls with one token must have in common.
func (q *query) params() string { return q.form.Encode() }

func (q *query) has(name string) bool { return q.form.Has(name) }

// text returns a parameter, "" where there is none.
func (q *query) text(name string) string {
	q.asked[name] = true
	return q.form.Get(name)
}

// pointer returns a parameter, nil where there is none.
func (q *query) pointer(name string) *string {
	if v := q.text(name); q.has(name) {
		return &v
	}
	return nil
}

// need returns a parameter that must be there.
func (q *query) need(name string) string {
	v := q.text(name)
	if v == "" {
		q.fail("MissingParameter", "The request must contain the parameter %s", name)
	}
	return v
}

func (q *query) number(name string, least int) int {
	v := q.text(name)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least {
		q.fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid.", v, name)
	}
	return n
}

func (q *query) bool(name string) bool {
	v := strings.ToLower(cmp.Or(q.text(name), "false"))
	if v != "true" && v != "false" {
		q.fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid. Must be true or false.", v, name)
	}
	return v == "true"
}

// list returns PREFIX.1SUFFIX, PREFIX.2SUFFIX and so on.
func (q *query) list(prefix, suffix string) []string {
	var list []string
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s.%d%s", prefix, i, suffix)
		if !q.has(name) {
			return list
		}
		list = append(list, q.text(name))
	}
}

func (q *query) addr(name, v string) netip.Addr {
	a, err := netip.ParseAddr(v)
	if err != nil {
		q.fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid. Invalid IP address.", v, name)
	}
	return a
}

func (q *query) addrs(prefix, suffix string) []netip.Addr {
	var list []netip.Addr
	for _, v := range q.list(prefix, suffix) {
		list = append(list, q.addr(prefix, v))
	}
	return list
}

func (q *query) prefixes(prefix, suffix string) []netip.Prefix {
	var list []netip.Prefix
	for _, v := range q.list(prefix, suffix) {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			q.fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid. Invalid prefix.", v, prefix)
		}
		list = append(list, p)
	}
	return list
}

// tags returns the tags below a parameter's name.
func (q *query) tags(prefix string) map[string]string {
	tags := map[string]string{}
	for i := 1; q.has(fmt.Sprintf("%s.%d.Key", prefix, i)); i++ {
		key := q.text(fmt.Sprintf("%s.%d.Key", prefix, i))
		if key == "" || strings.HasPrefix(key, "aws:") || len(key) > 128 {
			q.fail("InvalidTagKey.Malformed", "Tag keys can't be empty, long or start with aws: %q", key)
		}
		if _, twice := tags[key]; twice {
			q.fail("InvalidParameterValue", "Duplicate tag key '%s' specified.", key)
		}
		tags[key] = q.text(fmt.Sprintf("%s.%d.Value", prefix, i))
	}
	return tags
}

// specified returns the tags that a new resource of the type is to have.
func (q *query) specified(resource string) map[string]string {
	var tags map[string]string
	for i, of := range q.list("TagSpecification", ".ResourceType") {
		if of != resource {
			q.fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", of)
		}
		tags = q.tags(fmt.Sprintf("TagSpecification.%d.Tag", i+1))
	}
	return tags
}

// wellFormed is how EC2's ids look after their prefix.
var wellFormed = regexp.MustCompile(`^([0-9a-f]{8}|[0-9a-f]{17})$`)

// notFound returns the code of an id that does not exist: EC2 tells apart those
// that can't.
func notFound(id, prefix, malformed, missing string) string {
	rest, ok := strings.CutPrefix(id, prefix+"-")
	if !ok || !wellFormed.MatchString(rest) {
		return malformed
	}
	return missing
}

// nth is the name of a part of the i-th of a list, which counts from 1.
func nth(prefix string, i int, suffix string) string {
	return fmt.Sprintf("%s.%d%s", prefix, i+1, suffix)
}
