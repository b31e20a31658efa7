package agent

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// Store keeps the agent's memory over a restart. Load returns nil if there is
// none of this boot.
type Store interface {
	Load() ([]byte, error)
	Save([]byte) error
}

// memory is what can't be read off cache, cloud and kernel. Losing it costs a
// second ENI at worst, which is then found and given back.
type memory struct {
	Mode    string        `json:"mode"`         // the node's since its first start
	As      string        `json:"as,omitempty"` // the agent that the cloud answered last, see Parts
	Scale   *scale.State  `json:"scale,omitempty"`
	Health  *health.State `json:"health,omitempty"`
	Creates []create      `json:"creates,omitempty"`
	// Notes are the cloud's, of what a describe of the next process may still show.
	Notes cloud.Notes `json:"notes,omitzero"`
	earlierNotes
	// Begun are releases that the cloud may have heard of: they can't be taken back.
	Begun map[netip.Addr]bool `json:"begun,omitempty"`
	// Leaving are ENIs that are being deleted. True: the cloud may have heard of
	// it, so that nothing on them is safe any more.
	Leaving map[string]bool `json:"leaving,omitempty"`
	// Unsure are ENIs of which a call may still have an effect, since when.
	Unsure map[string]time.Duration `json:"unsure,omitempty"`
	// Topologies are the ENIs that an operator made for pods of topologies alone, with whose they are.
	Topologies map[string]string `json:"topologies,omitempty"`
	// Operated tells that an operator called the cloud last: what is above is of its object then.
	Operated bool `json:"operated,omitempty"`
	// Calls tells that the agent calls the cloud by the node's object, as long as no agent asks an operator to.
	Calls bool `json:"calls,omitempty"`
	// Revision is the highest of the object's that the node cache may have seen.
	Revision int64 `json:"revision,omitempty"`
	Epoch    int64 `json:"epoch,omitempty"` // of the leader that wrote it
	// Seen is when the last describe was asked for, or a while before: see first.go.
	Seen time.Duration `json:"seen,omitempty"`
}

// earlierNotes are Notes as the previous release has them: when which address and ENI went. They are
// written too, for a node that goes back to it must not take in again what it has just released.
type earlierNotes struct {
	Gone     map[netip.Addr]time.Duration `json:"gone,omitempty"`
	GoneENIs map[string]time.Duration     `json:"goneENIs,omitempty"`
}

// record is the memory with what of it is written down.
type record struct {
	mem      memory
	unsaved  bool // it changed and is not written down
	savedFor int  // the demand that it was last written down with
}

// create is the intent to have one more ENI. It is written down before the cloud
// is asked, and kept until the answer is known: the same token is used again.
type create struct {
	Token  string `json:"token"`
	Subnet string `json:"subnet"`
	Slots  int    `json:"slots"`
	V4     int    `json:"v4,omitempty"` // addresses to begin with
	V6     int    `json:"v6,omitempty"`
	Reason string `json:"reason"`

	unheard bool // the cloud knows nothing of it: its calls were refused
}

// recall reads what an earlier agent of this boot left.
func (a *Agent) recall() {
	text, err := a.Memory.Load()
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &a.mem)
	}
	if err != nil {
		a.Log.Warn("agent's memory can't be read; starting without", "error", err)
		a.Events.Error("memory")
		a.mem = memory{}
	}
	m := &a.mem
	if len(m.Notes.Gone)+len(m.Notes.Deleted) == 0 { // the previous release has none
		m.earlierNotes.addTo(&m.Notes)
	}
	if m.Begun == nil {
		m.Begun = map[netip.Addr]bool{}
	}
	if m.Leaving == nil {
		m.Leaving = map[string]bool{}
	}
	for addr := range m.Begun {
		a.doubts.given[addr] = a.Now()
	}
	for id := range m.Leaving { // the answer may have been lost with the agent that asked
		m.Leaving[id], a.doubts.unheard[id] = true, a.Now()
	}
	if m.Unsure == nil {
		m.Unsure = map[string]time.Duration{}
	}
	if m.Health == nil {
		s := health.New()
		m.Health = &s
	}
	if m.Scale != nil {
		a.savedFor = m.Scale.Demand
	}
	for _, c := range m.Creates {
		m.Notes.Begun = append(m.Notes.Begun, c.Token)
	}
	a.Cloud.Recall(m.Notes)
	a.keepMode()
}

// addTo adds what agents of the release before wrote down in place of notes.
func (e earlierNotes) addTo(n *cloud.Notes) {
	n.Deleted = slices.Sorted(maps.Keys(e.GoneENIs))
	if len(e.Gone) > 0 {
		n.Gone = map[string][]netip.Addr{"": slices.SortedFunc(maps.Keys(e.Gone), netip.Addr.Compare)}
	}
}

// follow makes them say what the notes do. The previous release forgets what went longer ago than describes lag: with
// each change all went now.
func (e *earlierNotes) follow(n cloud.Notes, now time.Duration) {
	next := earlierNotes{map[netip.Addr]time.Duration{}, map[string]time.Duration{}}
	for _, list := range n.Gone {
		for _, addr := range list {
			next.Gone[addr] = now
		}
	}
	for _, id := range n.Deleted {
		next.GoneENIs[id] = now
	}
	if !sameKeys(e.Gone, next.Gone) || !sameKeys(e.GoneENIs, next.GoneENIs) {
		*e = next
	}
}

func sameKeys[K comparable, V any](a, b map[K]V) bool {
	return maps.EqualFunc(a, b, func(V, V) bool { return true })
}

// keepMode lets the node stay in the mode it has unless the configuration names
// one: a new default never changes it silently. 0 burstable ENIs name every mode but
// burstable.
func (a *Agent) keepMode() {
	mode, err := pool.ParseMode(a.mem.Mode)
	dropped := mode == pool.Burstable && a.conf.Pool.Multiple == 0
	if err == nil && !a.conf.ModeSet && mode != a.conf.Pool.Mode && !dropped {
		a.Log.Info("node keeps its mode; name pool.mode to change it", "mode", mode.String(), "default", a.conf.Pool.Mode.String())
		a.conf.Pool.Mode = mode
	}
	if now := a.conf.Pool.Mode.String(); a.mem.Mode != now {
		a.mem.Mode, a.unsaved = now, true
	}
}

// remember writes the memory down. What depends on it must not be done if this
// fails.
func (a *Agent) remember() error {
	a.mem.Notes = a.Cloud.Notes()
	a.mem.earlierNotes.follow(a.mem.Notes, a.Now())
	if a.view.known && a.conf.DescribeQuiet() > 0 {
		a.mem.Seen = a.view.start
	}
	text, err := json.Marshal(a.mem)
	if err == nil {
		err = a.Memory.Save(text)
	}
	if err != nil {
		return &memoryError{err}
	}
	if a.mem.Scale != nil {
		a.savedFor = a.mem.Scale.Demand
	}
	return nil
}

// memoryError is that the memory can't be written down.
type memoryError struct{ err error }

func (e *memoryError) Error() string { return "write agent's memory: " + e.err.Error() }

func (e *memoryError) Unwrap() error { return e.err }

// making tells whether an ENI with the token is still being made.
func (m *memory) making(token string) bool {
	return slices.ContainsFunc(m.Creates, func(c create) bool { return c.Token == token })
}

// isLeaving tells whether the ENI is being deleted.
func (m *memory) isLeaving(id string) bool {
	_, leaving := m.Leaving[id]
	return leaving
}

// forget drops notes that no describe from start on can contradict.
func (m *memory) forget(start, settle time.Duration) { expire(m.Unsure, start-settle) }

func expire[K comparable](notes map[K]time.Duration, before time.Duration) {
	for k, t := range notes {
		if t <= before {
			delete(notes, k)
		}
	}
}
