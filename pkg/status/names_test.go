package status

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The names that the previous release wrote, and those of this one. enipoolctl of one reads the file of
// the other's agent during a rollout, and people have scripts on it: none is renamed or moved.
const (
	namesBefore = "node written due mode strategy demand need target reason burst most maxPods maxPodsSource " +
		"addresses addresses.attached addresses.free addresses.used addresses.cooling addresses.releasing addresses.lost addresses.damaged " +
		"enis eniLimit waiters orphans inFlight backoff blockers leftOut watched synced pods " +
		"health health.faulty health.reason health.message health.taint health.capacity faultSince ready problem exhausted lastError lastErrorTime"
	namesNow = "node written due mode beat strategy demand need target reason burst most maxPods maxPodsSource " +
		"addresses addresses.attached addresses.free addresses.used addresses.cooling addresses.releasing addresses.lost addresses.held addresses.unlinked addresses.damaged addresses.reserved addresses.claimed " +
		"enis eniLimit perENI waiters orphans inFlight backoff blockers unlinked held shared blocked misrouted prefixes unused leftOut " +
		"undone undone.change undone.times undone.first undone.last undone.who undone.by undone.shownFor askedBack portConflicts " +
		"fastPath fastPath.off fastPath.out fastPath.in fastPath.local " +
		"refused refused.error refused.since refused.start refused.kept refused.notKept refused.untilReboot watched synced pods " +
		"health health.faulty health.reason health.message health.taint health.capacity faultSince faultOver targetNext " +
		"causes causes.kind causes.object causes.slots causes.next causes.reason causes.what ready problem exhausted lastError lastErrorTime"
)

func TestTheNamesInTheFileAreStable(t *testing.T) {
	var s Status
	fill(reflect.ValueOf(&s).Elem())
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	got := names(t, d, "")
	if diff := cmp.Diff(strings.Fields(namesNow), got); diff != "" {
		t.Errorf("names, in their order (-want +got):\n%s", diff)
	}
	have := map[string]bool{}
	for _, name := range got {
		have[name] = true
	}
	for name := range strings.FieldsSeq(namesBefore) {
		if !have[name] {
			t.Errorf("%s is gone", name)
		}
	}
}

// fill makes everything in v something that is written.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64:
		v.SetUint(1)
	default:
		v.SetInt(1)
	}
}

// names returns the names of the value that d comes to, in their order, below a path.
func names(t *testing.T, d *json.Decoder, path string) (list []string) {
	t.Helper()
	next := func() json.Token {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	switch next() {
	case json.Delim('{'):
		for d.More() {
			name := path + next().(string)
			list = append(append(list, name), names(t, d, name+".")...)
		}
		next()
	case json.Delim('['):
		for d.More() {
			list = append(list, names(t, d, path)...)
		}
		next()
	}
	return list
}
