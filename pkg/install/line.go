package install

import "fmt"

// What is the kind of a Line: what became of a thing, or what was found.
type What int

// The kinds of lines, as the first word of each says it.
const (
	OK        What = iota
	Would          // be done without --dry-run
	Unchanged      // it was so before
	Installed      // a program
	Wrote          // a system file
	Staged         // the network configuration, for the agent to publish
	Published      // the network configuration, for the runtime to see
	Withdrew       // the network configuration, until the agent can serve
	Removed
	Kept     // it is not enipool's
	Warning  // a person should know it
	NotTried // it says nothing about the node, and how to try it
	MustFix  // a person has to change something first
)

var words = [...]string{"ok", "would", "unchanged", "installed", "wrote", "staged", "published", "withdrew", "removed", "kept", "warning", "not tried", "must fix"}

// String returns the word for people.
func (w What) String() string { return words[w] }

// Line is one thing that was done or found, for people.
type Line struct {
	What What
	Text string
}

// String returns the line as it is printed.
func (l Line) String() string { return fmt.Sprintf("%-9s %s", l.What, l.Text) }

// Linef makes a line.
func Linef(w What, format string, args ...any) Line {
	return Line{w, fmt.Sprintf(format, args...)}
}
