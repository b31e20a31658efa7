package explore

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/scale"
	"golang.org/x/time/rate"
)

// digest tells states apart: the cloud, the node, what the agent's process and its engine
// have in mind, and what calls under way have been answered. What makes no difference
// doesn't count: the names of ENIs and tokens, human words, and of times all but their
// order of magnitude from now.
type digest struct {
	w     *world
	names map[string]string
	sum   uint64
}

func (w *world) newDigest() *digest {
	d := &digest{w: w, names: map[string]string{}, sum: 14695981039346656037}
	for n, i := range w.now() {
		d.names[i.ID] = fmt.Sprint("E", n)
		if i.Attachment != "" {
			d.names[i.Attachment] = fmt.Sprint("A", n)
		}
		if i.Mark.Token != "" {
			d.names[i.Mark.Token] = fmt.Sprint("T", n)
		}
	}
	return d
}

// remembered is what counts of the agent's file.
type remembered struct {
	Creates []struct {
		Token string
		V4    int
	}
	Notes   cloud.Notes
	Begun   map[netip.Addr]bool
	Leaving map[string]bool
	Unsure  map[string]time.Duration
	Scale   *scale.State
}

// state is the digest of all there is before a choice.
func (w *world) state(name string) uint64 {
	d := w.newDigest()
	d.text(name)
	d.any(w.now())
	if before := w.before(); len(w.versions) > 1 && &before[0] != &w.now()[0] {
		d.any(before)
	}
	var saved remembered
	_ = json.Unmarshal(w.saved, &saved)
	d.any(saved)
	if w.cache != nil {
		d.any(w.cache.ENIs)
		d.any(w.cache.Addresses)
	}
	for _, p := range w.pods {
		d.any(p.owner != nil)
		d.any(p.addr)
	}
	d.any(w.routed)
	if w.life == nil || w.life.agent == nil {
		return d.sum
	}
	d.any(w.life.clock.IsBusy())
	d.any(w.life.agent)
	d.any(w.life.engine)
	for _, p := range w.clock.calls {
		d.number(p.heard)
	}
	return d.sum
}

// heard notes what the call that runs now was answered.
func (w *world) heard(name string, answer ...any) {
	if w.clock.current == nil {
		return
	}
	d := w.newDigest()
	d.sum ^= w.clock.current.heard
	d.text(name)
	for _, a := range answer {
		if err, is := a.(error); is {
			d.text(err.Error())
		} else if a != nil {
			d.any(a)
		}
	}
	w.clock.current.heard = d.sum
}

func (d *digest) number(n uint64) {
	for range 8 {
		d.sum = (d.sum ^ n&0xff) * 1099511628211
		n >>= 8
	}
}

// text is a name or several words of which some are names.
func (d *digest) text(s string) {
	for word := range strings.FieldsSeq(s) {
		word = strings.Trim(word, "[]")
		name, known := d.names[word]
		switch {
		case known:
			word = name
		case strings.HasPrefix(word, "eni-"):
			word = "gone"
		case strings.HasPrefix(word, "enipool-"):
			word = "token"
		}
		d.word(word)
	}
	d.word("")
}

func (d *digest) word(s string) {
	for i := range len(s) {
		d.sum = (d.sum ^ uint64(s[i])) * 1099511628211
	}
	d.sum = (d.sum ^ 0x100) * 1099511628211
}

// bounds are where times begin to make a difference: with the window in which describes
// lag, when addresses have cooled down, and when the engine relies on a look no longer.
var bounds = []time.Duration{0, 9500 * time.Millisecond, 31 * time.Second, 8 * time.Minute}

// since is a time, as seen from now.
func (d *digest) since(t time.Duration) {
	size, _ := slices.BinarySearch(bounds, max(t, -t))
	if t < 0 {
		size = -size
	}
	d.number(uint64(size + 100))
}

var (
	isDuration = reflect.TypeFor[time.Duration]()
	isTime     = reflect.TypeFor[time.Time]()
	isAddr     = reflect.TypeFor[netip.Addr]()
	ignored    = []reflect.Type{reflect.TypeFor[sync.Mutex](), reflect.TypeFor[*rate.Limiter](), reflect.TypeFor[*slog.Logger](),
		reflect.TypeFor[*rand.Rand](), reflect.TypeFor[agent.Parts](), reflect.TypeFor[driver.Traits](), isConfig}
	isConfig = reflect.TypeOf(config())
	isSizing = reflect.TypeFor[scale.State]()
	isRun    = reflect.TypeFor[scale.Run]()
	// inSeconds are those of scale.State's fields that are seconds since boot.
	inSeconds = map[string]bool{"Now": true, "LastOver": true, "LastRelease": true}
	// human are fields that are said to people, or are known from elsewhere.
	human = map[string]bool{"status": true, "said": true, "causes": true, "targetCauses": true, "cached": true, "known": true, "quarantined": true, "Reason": true, "reason": true,
		"MAC": true, "steps": true, "o": true, "err": true, "fights": true, "Health": true, "Container": true, "Pod": true, "Netns": true, "planned": true,
		"Asked": true, "Created": true, "asked": true, "lines": true, "cacheErr": true, "earlierNotes": true}
)

func (d *digest) any(x any) { d.value(reflect.ValueOf(x)) }

// value adds what can be read of a value. Times since boot are as old as they are.
func (d *digest) value(v reflect.Value) {
	if !v.IsValid() {
		d.number(0)
		return
	}
	t, kind := v.Type(), v.Kind()
	switch {
	case (kind == reflect.Struct || kind == reflect.Pointer) && slices.Contains(ignored, t):
		return
	case kind == reflect.Int64 && t == isDuration:
		if v.Int() != 0 {
			d.since(time.Duration(v.Int()) - d.w.sinceBoot())
		}
		return
	case kind == reflect.Struct && t == isTime:
		if s := v.Field(1).Int(); s != 0 { // seconds since the year 1
			d.since(time.Duration(s-epochSeconds)*time.Second - d.w.clock.now)
		}
		return
	case kind == reflect.Struct && t == isAddr:
		d.value(v.Field(0))
		return
	}
	switch kind {
	case reflect.Bool:
		if v.Bool() {
			d.number(2)
		} else {
			d.number(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		d.number(v.Uint())
	case reflect.Float64:
		d.number(uint64(v.Float() * 1000))
	case reflect.String:
		d.text(v.String())
	case reflect.Slice, reflect.Array:
		d.number(uint64(v.Len()))
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Map:
		d.table(v)
	case reflect.Pointer:
		if d.number(1); !v.IsNil() {
			d.value(v.Elem())
		}
	case reflect.Struct:
		for _, f := range d.fields(t) {
			switch at := v.Field(f.at); f.as {
			case asSeconds:
				d.since(time.Duration(at.Int())*time.Second - d.w.sinceBoot())
			case asRun:
				d.since(min(time.Duration(at.Int()), 15) * time.Second)
			default:
				d.value(at)
			}
		}
	}
}

// field is one that counts, and how.
type field struct {
	at int
	as reading
}

type reading uint8

const (
	asItIs    reading = iota
	asSeconds         // since boot
	asRun             // seconds that something has lasted, of which more than a few are all the same
)

// fields are those of a struct that count. Reflection tells names at a price: each type is
// asked for once.
func (d *digest) fields(t reflect.Type) (list []field) {
	if known, ok := d.w.fields[t]; ok {
		return known
	}
	for i := range t.NumField() {
		switch name := t.Field(i).Name; {
		case t == isSizing && inSeconds[name]:
			list = append(list, field{i, asSeconds})
		case t == isRun && name == "Seconds":
			list = append(list, field{i, asRun})
		case !human[name]:
			list = append(list, field{i, asItIs})
		}
	}
	if d.w.fields != nil {
		d.w.fields[t] = list
	}
	return list
}

// table adds a map, in whatever order it comes.
func (d *digest) table(v reflect.Value) {
	sum, before := uint64(0), d.sum
	for it := v.MapRange(); it.Next(); {
		d.sum = 1
		d.value(it.Key())
		d.value(it.Value())
		sum += d.sum
	}
	d.sum = before
	d.number(uint64(v.Len()))
	d.number(sum)
}

// epochSeconds is how time.Time counts the epoch.
var epochSeconds = reflect.ValueOf(epoch).Field(1).Int()
