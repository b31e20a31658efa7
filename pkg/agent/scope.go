package agent

import "cmp"

// class is what is done: the calls to the cloud by the limits that accounts have for them, and
// the node's own work.
type class uint8

// The classes. What fails in one says nothing of the others: who may not release addresses may
// get some, and who may not look may do both.
const (
	looks class = iota + 1
	grows
	gives
	adopts   // new ENIs and addresses into kernel and node cache
	compares // the kernel with the node cache
	shapes   // bandwidth limits of pods
	notices  // what others hold of the pool
	rebuilds // the node cache
	ticks
	asksFor // the node's object
)

var classNames = [...]string{looks: "describes", grows: "requests for addresses", gives: "releases", adopts: "new addresses on the node",
	compares: "the kernel", shapes: "bandwidth limits", notices: "what others hold", rebuilds: "building the node cache", ticks: "ticks", asksFor: "writes of the node's object"}

// String tells people.
func (c class) String() string { return classNames[c] }

// objectKind is what kind of thing an object is.
type objectKind uint8

const (
	everything objectKind = iota // no object: all of a class
	anENI
	anIntent // an ENI that is being made, by its token
	newENIs  // in a subnet; without id in any
	aSubnet  // the addresses that are left there
	aSpec    // what the node asks the operator for
)

// object is one thing in the cloud: calls are about it, one at a time, and failures are its own.
type object struct {
	kind objectKind
	id   string
}

func eniKey(id string) object       { return object{anENI, id} }
func intentKey(token string) object { return object{anIntent, token} }

// scope is what is left alone after a failure: a class, or one object in it.
type scope struct {
	class class
	object
}

// of returns the scope of a whole class.
func of(c class) scope { return scope{class: c} }

func assignsTo(id string) scope   { return scope{grows, eniKey(id)} }
func releasesOf(id string) scope  { return scope{gives, eniKey(id)} }
func intentOf(token string) scope { return scope{grows, intentKey(token)} }
func fullSubnet(id string) scope  { return scope{grows, object{aSubnet, id}} }
func newENIsIn(id string) scope   { return scope{grows, object{newENIs, id}} }
func adoptionOf(id string) scope  { return scope{adopts, eniKey(id)} }

// String tells people.
func (s scope) String() string {
	switch s.kind {
	case anENI:
		return s.class.String() + " of " + s.id
	case anIntent:
		return "the new ENI of token " + s.id
	case newENIs:
		return "new ENIs in " + cmp.Or(s.id, "any subnet")
	case aSubnet:
		return s.class.String() + " in " + s.id
	}
	return s.class.String()
}

// compareScopes orders what is told: classes before their objects.
func compareScopes(x, y scope) int {
	return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.kind, y.kind), cmp.Compare(x.id, y.id))
}
