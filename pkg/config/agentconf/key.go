package agentconf

import "slices"

// key is one key of the file. The table of all of them, which keys returns, is all that
// parsing, defaults, reloading, the JSON schema and the head of conf/agent.yaml go by.
type key struct {
	name, want string
	set        func(v any) []fault // sets the configuration to a value of the file, or returns what is wrong with it
	isList     bool                // a list, or a section of any names: With can't set it

	places []place // where in the configuration the value lies
	rule   rule    // what a JSON schema can say of a value
	unit   string  // of a number
	needs  applies // what it needs to apply
	since  string  // the first release that knows it
	doc    string  // what it is, in a line
	free   bool    // it has no one default: that depends on other keys, or on the node
}

// applies is when a changed value applies.
type applies uint8

// Each key must say which: the zero value is neither.
const (
	atOnce    applies = iota + 1
	atRestart         // of the agent
)

// The releases that keys came with.
const (
	release1   = "9295a34" // the previous one; see scripts/previous.sh
	unreleased = "unreleased"
)

// rule is a part of a JSON schema.
type rule map[string]any

// place is where a part of a configuration lies: a pointer into it, and functions that work on it
// and on the same part of another configuration, whose into is their argument.
type place struct {
	into  any
	same  func(other any) bool
	take  func(other any)
	shown func() any // as a file has it
}

// singlePlace is the place of a single value.
func singlePlace[T comparable](into *T, shown func() any) place {
	return place{into: into, same: func(other any) bool { return *into == *other.(*T) }, take: func(other any) { *into = *other.(*T) }, shown: shown}
}

// textAt is the place of a value that a file shows as it is.
func textAt(into *string) place { return singlePlace(into, func() any { return *into }) }

// listPlace is the place of a list.
func listPlace[T comparable](into *[]T) place {
	return place{into: into, same: func(other any) bool { return slices.Equal(*into, *other.(*[]T)) },
		take: func(other any) { *into = *other.(*[]T) }, shown: func() any { return *into }}
}

// at says where the value lies: in one place, or in several.
func (k key) at(p ...place) key {
	k.places = p
	return k
}

// of says what a JSON schema can.
func (k key) of(r rule) key {
	k.rule = r
	return k
}

// wants says what the value must be, where not every value that is taken is to be named.
func (k key) wants(text string) key {
	k.want = text
	return k
}

func (k key) in(unit string) key {
	k.unit = unit
	return k
}

// noDefault says that there is no one default.
func (k key) noDefault() key {
	k.free = true
	return k
}

// live is a key whose changes apply at once.
func (k key) live(since, doc string) key { return k.withSource(atOnce, since, doc) }

// restart is a key whose changes apply when the agent is started again.
func (k key) restart(since, doc string) key { return k.withSource(atRestart, since, doc) }

func (k key) withSource(needs applies, since, doc string) key {
	k.needs, k.since, k.doc = needs, since, doc
	return k
}

// sameAs tells whether the key has the same value in the configuration that other is of.
func (k key) sameAs(other key) bool {
	for i, p := range k.places {
		if !p.same(other.places[i].into) {
			return false
		}
	}
	return true
}

// takeFrom sets the key to the value that it has in the configuration that other is of.
func (k key) takeFrom(other key) {
	for i, p := range k.places {
		p.take(other.places[i].into)
	}
}

// Reload returns the configuration for an agent that runs with c and whose file now has next: keys
// whose changes need a restart keep their value of c, and changed names those of them whose value
// in next is another one.
func (c Config) Reload(next Config) (reloaded Config, changed []string) {
	was, now := allKeys(&c), allKeys(&next)
	for i, k := range now {
		if k.needs != atRestart || k.sameAs(was[i]) {
			continue
		}
		changed = append(changed, k.name)
		k.takeFrom(was[i])
	}
	return next, changed
}
