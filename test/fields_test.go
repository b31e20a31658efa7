package test

import (
	"go/ast"
	"testing"
)

// mostFields is how many fields a struct may have: more hold several things, each of which has
// functions of its own.
const mostFields = 20

// larger are the structs that may have so many, and no more than now, with the reason.
var larger = map[string]struct {
	fields int
	why    string
}{
	"config/agentconf.Cloud": {22, "it mirrors the keys of agent.yaml"},
	"status.Status":          {37, "it mirrors the keys of the status file, whose names are stable"},
	"cloud/driver.Traits":    {27, "a table of how clouds differ: each driver fills in one row of it"},
	"cloud/driver.Interface": {21, "an ENI as a cloud's API tells it"},
	"cloud/sim.Options":      {22, "the configuration of a simulated account"},
	"host/events.Event":      {22, "an announcement of the kernel: one kind has some of its fields"},
}

func TestNoStructOfAPackageHoldsEverything(t *testing.T) {
	met := map[string]bool{}
	for _, s := range sources(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			if list, is := spec.Type.(*ast.StructType); is {
				name, n := s.pkg+"."+spec.Name.Name, fieldsIn(list)
				most := mostFields
				if may, is := larger[name]; is {
					met[name] = true
					if most = may.fields; n <= mostFields {
						t.Errorf("%s has %d fields: it needs no exception (%s)", name, n, may.why)
					}
				}
				if n > most {
					t.Errorf("%s: %s has %d fields, at most %d: make values of those that belong together, with the functions that need no others", s.file, name, n, most)
				}
			}
			return true
		})
	}
	for name := range larger {
		if !met[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// fieldsIn counts the names; an embedded one is one.
func fieldsIn(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}
