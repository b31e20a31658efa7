// Package keys reads configuration files by a table of their keys: each key is a line that says where its
// value lies, what it may be, since which release it is known, and whether a change counts at once. Errors
// name the key, its line and what is wanted, and a JSON schema for editors comes of the same table.
package keys

import "slices"

// Key is one key of a file. A table of all of them, whose values lie in a configuration, is all that parsing,
// defaults, reloading and the JSON schema go by.
type Key struct {
	Name, Want string
	Set        func(v any) []Fault // sets the configuration to a value of the file, or returns what is wrong with it
	IsList     bool                // a list, or a section of any names

	Places []Place // where in the configuration the value lies
	Rule   Rule    // what a JSON schema can say of a value
	Unit   string  // of a number
	Needs  Applies // what it needs to apply
	Since  string  // the first release that knows it
	Doc    string  // what it is, in a line
	Free   bool    // it has no one default: that depends on other keys, or on the node
}

// Applies is when a changed value applies.
type Applies uint8

// Each key must say which: the zero value is neither.
const (
	AtOnce    Applies = iota + 1
	AtRestart         // of the program
)

// Rule is a part of a JSON schema.
type Rule map[string]any

// Place is where a part of a configuration lies: a pointer into it, and functions that work on it
// and on the same part of another configuration, whose Into is their argument.
type Place struct {
	Into  any
	Same  func(other any) bool
	Take  func(other any)
	Shown func() any // as a file has it
}

// ValueAt is the place of a single value.
func ValueAt[T comparable](into *T, shown func() any) Place {
	return Place{Into: into, Same: func(other any) bool { return *into == *other.(*T) }, Take: func(other any) { *into = *other.(*T) }, Shown: shown}
}

// TextAt is the place of a value that a file shows as it is.
func TextAt(into *string) Place { return ValueAt(into, func() any { return *into }) }

// ListAt is the place of a list.
func ListAt[T comparable](into *[]T) Place {
	return Place{Into: into, Same: func(other any) bool { return slices.Equal(*into, *other.(*[]T)) },
		Take: func(other any) { *into = *other.(*[]T) }, Shown: func() any { return *into }}
}

// At says where the value lies: in one place, or in several.
func (k Key) At(p ...Place) Key {
	k.Places = p
	return k
}

// Of says what a JSON schema can.
func (k Key) Of(r Rule) Key {
	k.Rule = r
	return k
}

// Wants says what the value must be, where not every value that is taken is to be named.
func (k Key) Wants(text string) Key {
	k.Want = text
	return k
}

// In says what a number counts.
func (k Key) In(unit string) Key {
	k.Unit = unit
	return k
}

// NoDefault says that there is no one default.
func (k Key) NoDefault() Key {
	k.Free = true
	return k
}

// About says what the key is, in a line, for a table whose keys all apply alike.
func (k Key) About(doc string) Key {
	k.Doc = doc
	return k
}

// Live is a key whose changes apply at once.
func (k Key) Live(since, doc string) Key { return k.withSource(AtOnce, since, doc) }

// Restart is a key whose changes apply when the program is started again.
func (k Key) Restart(since, doc string) Key { return k.withSource(AtRestart, since, doc) }

func (k Key) withSource(needs Applies, since, doc string) Key {
	k.Needs, k.Since, k.Doc = needs, since, doc
	return k
}

// SameAs tells whether the key has the same value in the configuration that other is of.
func (k Key) SameAs(other Key) bool {
	for i, p := range k.Places {
		if !p.Same(other.Places[i].Into) {
			return false
		}
	}
	return true
}

// takeFrom sets the key to the value that it has in the configuration that other is of.
func (k Key) takeFrom(other Key) {
	for i, p := range k.Places {
		p.Take(other.Places[i].Into)
	}
}

// Reload puts the values of keys that count only after a restart back to what they were, and returns the names of
// those that had changed. was and now are the same table for the configuration that is in force and the next one.
func Reload(was, now []Key) (changed []string) {
	for i, k := range now {
		if k.Needs != AtRestart || k.SameAs(was[i]) {
			continue
		}
		changed = append(changed, k.Name)
		k.takeFrom(was[i])
	}
	return changed
}
