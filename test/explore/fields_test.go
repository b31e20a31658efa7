package explore

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud/engine"
)

// fieldsOf are the names of a struct's fields.
func fieldsOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	return names
}

// States that differ in what the digest leaves out are taken for one: a new field of the
// agent's file comes into the digest, or in here with a reason.
func TestTheDigestKnowsAllThatTheAgentWritesDown(t *testing.T) {
	field, _ := reflect.TypeFor[agent.Agent]().FieldByName("mem")
	file := field.Type
	creates, _ := file.FieldByName("Creates")
	for _, part := range []struct {
		has, digested reflect.Type
		out           []string
	}{
		{file, reflect.TypeFor[remembered](), []string{
			"Mode", "As", // never change here

			"Health",       // changes nothing in the cloud
			"earlierNotes", // say what Notes do

			"Operated", "Calls", "Revision", "Epoch", "Topologies", // of nodes in a cluster with an operator

			"Seen", // is not written where describes come as often as here
		}},
		{creates.Type.Elem(), reflect.TypeFor[remembered]().Field(0).Type.Elem(), []string{
			"Subnet", "Slots", // there is one subnet, and slots are V4
			"V6",      // there is none
			"Reason",  // for people
			"unheard", // the process's alone, not in the file
		}},
	} {
		for _, name := range fieldsOf(part.has) {
			if !slices.Contains(fieldsOf(part.digested), name) && !slices.Contains(part.out, name) {
				t.Errorf("the digest does not know %s.%s", part.has, name)
			}
		}
	}
}

// Fields are left out by their names alone: a new one that happens to have such a name is
// to be looked at.
func TestTheDigestLeavesOutNothingElse(t *testing.T) {
	var out []string
	met := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		if met[t] || slices.Contains(ignored, t) || t == isTime || t == isAddr {
			return
		}
		met[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(t.Elem())
		case reflect.Map:
			walk(t.Key())
			walk(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); !human[f.Name] {
					walk(f.Type)
				} else if strings.Contains(t.PkgPath(), "/enipool/") {
					out = append(out, t.String()+"."+f.Name)
				}
			}
		}
	}
	walk(reflect.TypeFor[agent.Agent]())
	walk(reflect.TypeFor[engine.Node]())
	slices.Sort(out)
	want := strings.Fields(`
		agent.Agent.fights agent.Agent.status agent.Agent.steps
		agent.backoff.err agent.create.Reason agent.memory.Health agent.memory.earlierNotes
		agent.news.said agent.outlook.causes agent.outlook.known agent.outlook.planned agent.outlook.targetCauses
		agent.reading.cacheErr agent.reading.cached agent.reading.lines agent.view.known
		cloud.Interface.Created cloud.Interface.MAC driver.Interface.Created driver.Interface.MAC driver.Mark.Asked
		engine.Node.known engine.Node.o engine.Node.quarantined engine.Node.said engine.intent.asked
		eni.Key.Container eni.Owner.Netns eni.Owner.Pod eni.Reservation.Pod scale.Decision.Reason`)
	if !slices.Equal(out, want) {
		t.Errorf("left out by their names are\n%s", strings.Join(out, "\n"))
	}
}
