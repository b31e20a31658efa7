package nodecache

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// tear is one change of the file: what it was, what it became, and the lines that were written.
type tear struct {
	*testing.T
	what          string
	old, next     []byte
	lines         []int
	before, after map[netip.Addr]string    // each address as a line of the two files
	free          map[netip.Addr]bool      // those that a pod may have once the change is whole, or could before
	lives         map[netip.Addr]eni.Owner // those of a pod that has them before and after
	tries         int
}

func newTear(t *testing.T, what string, old, next []byte) *tear {
	t.Helper()
	r := &tear{T: t, what: what, old: old, next: next, lines: changedLines(old, next), before: map[netip.Addr]string{}, after: map[netip.Addr]string{}, free: map[netip.Addr]bool{}, lives: map[netip.Addr]eni.Owner{}}
	had := map[netip.Addr]eni.Owner{}
	for _, file := range [][]byte{old, next} {
		s, err := decodeBytes(file)
		if err != nil || len(s.Damaged) > 0 {
			t.Fatalf("%s: the whole file: %v, %v", what, err, s)
		}
		clear(r.lives)
		for _, a := range s.Addresses {
			r.before[a.Addr], r.after[a.Addr] = cmp.Or(r.after[a.Addr], show(a)), show(a)
			r.free[a.Addr] = r.free[a.Addr] || a.State == eni.Free
			if a.Owner != nil && had[a.Addr] == *a.Owner {
				r.lives[a.Addr] = *a.Owner
			} else if a.Owner != nil {
				had[a.Addr] = *a.Owner
			}
		}
	}
	return r
}

// tear replays what a crash in the middle of it may leave: every prefix of each line that it
// wrote, with those before it written, and any of its sectors old or new.
func (r *tear) tear(rng *rand.Rand) {
	file := bytes.Clone(r.old)
	for _, n := range r.lines {
		for at := n * lineSize; at < (n+1)*lineSize; at++ {
			if file[at] != r.next[at] {
				file[at] = r.next[at]
				r.replay(file)
			}
		}
	}
	for range 64 {
		file := bytes.Clone(r.old)
		for _, n := range r.lines {
			switch rng.IntN(4) {
			case 0, 1:
				copy(file[n*lineSize:(n+1)*lineSize], r.next[n*lineSize:])
			case 2: // cut anywhere, either half new
				cut := n*lineSize + rng.IntN(lineSize)
				copy(file[cut:(n+1)*lineSize], r.next[cut:])
			}
		}
		r.replay(file)
	}
}

// replay reads the file as it may be left, as a person or an agent does, and as an ADD.
func (r *tear) replay(file []byte) {
	r.tries++
	s, err := decodeBytes(file)
	if err != nil {
		r.Fatalf("%s: %v", r.what, err)
	}
	first := len(file)/lineSize - len(r.before)
	seen := map[netip.Addr]bool{}
	for _, a := range s.Addresses {
		if text := show(a); text != r.before[a.Addr] && text != r.after[a.Addr] || seen[a.Addr] {
			r.Fatalf("%s: read %s, which nobody wrote, or twice: it was %s and becomes %s", r.what, text, r.before[a.Addr], r.after[a.Addr])
		}
		seen[a.Addr] = true
	}
	if len(seen)+len(s.Damaged) != len(r.before) {
		r.Fatalf("%s: %d addresses and %d damaged, of %d", r.what, len(seen), len(s.Damaged), len(r.before))
	}
	torn := map[int]bool{}
	for _, n := range r.lines {
		line := file[n*lineSize : (n+1)*lineSize]
		torn[n] = !bytes.Equal(line, r.old[n*lineSize:(n+1)*lineSize]) && !bytes.Equal(line, r.next[n*lineSize:(n+1)*lineSize])
	}
	for _, d := range s.Damaged {
		if !torn[first+d.Record] {
			r.Fatalf("%s: damage is told of line %d, which is whole", r.what, first+d.Record+1)
		}
		delete(torn, first+d.Record)
	}
	for n, is := range torn {
		if is {
			r.Fatalf("%s: line %d is torn, and nobody is told", r.what, n+1)
		}
	}
	r.add(file)
	r.rebuild(&s.State)
}

// add lets a new pod have what an ADD finds free in the file.
func (r *tear) add(file []byte) {
	k := key("new")
	s, err := decode(bytes.NewReader(file), int64(len(file)), &k)
	if err != nil {
		r.Fatalf("%s: %v", r.what, err)
	}
	r.taken("an ADD", &s.State)
}

// rebuild rebuilds the node state as the agent does. The kernel shows the living pods of enipool, and
// nothing of those of other plugins.
func (r *tear) rebuild(s *ipam.State) {
	want := ipam.State{Settings: s.Settings, ENIs: s.ENIs}
	for _, a := range tornCache(false).Addresses {
		want.Addresses = append(want.Addresses, eni.Address{Addr: a.Addr, ENI: a.ENI})
	}
	kernel := map[netip.Addr]eni.Owner{}
	for addr, o := range r.lives {
		if o.Kind != eni.Delegated {
			kernel[addr] = o
		}
	}
	next, err := ipam.Merge(s, want, kernel, now)
	if err != nil {
		r.Fatalf("%s: %v", r.what, err)
	}
	next.Distrust(s, now)
	if err := next.Check(); err != nil {
		r.Fatalf("%s: %v", r.what, err)
	}
	later := next.Clone()
	r.taken("an ADD after a rebuild", next)
	for addr := range r.lives {
		at := slices.IndexFunc(later.Addresses, func(a eni.Address) bool { return a.Addr == addr })
		if later.Addresses[at].State != eni.Used || later.Addresses[at].Owner.Key != r.lives[addr].Key {
			r.Fatalf("%s: after a rebuild %s is %s, and a pod has it", r.what, addr, show(later.Addresses[at]))
		}
	}
}

// now is the time of the history: nothing has cooled down by then.
const now = 1000 * time.Second

// taken fails the test if new pods get an address that was a pod's, or rested, by a write
// that was whole.
func (r *tear) taken(who string, s *ipam.State) {
	for n := 0; ; n++ {
		l, err := s.AssignPod(owner(fmt.Sprint("new", n)), "", now)
		if err != nil {
			return
		}
		for _, a := range l.Addresses {
			if !r.free[a.Addr] {
				r.Fatalf("%s: %s gets %s: it was %s and becomes %s", r.what, who, a.Addr, r.before[a.Addr], r.after[a.Addr])
			}
		}
	}
}

// tornCache is a node state of both families on two ENIs, all free, or in part reserved.
func tornCache(reserved bool) *ipam.State {
	s := small()
	s.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6}
	s.ENIs[0].V6 = eni.Net{Primary: netip.MustParsePrefix("2001:db8:0:1::20/64"), Gateway: netip.MustParseAddr("fe80::1")}
	s.ENIs[1].V4.Primary = netip.MustParsePrefix("10.0.1.20/24")
	s.ENIs[1].V4.Gateway = netip.MustParseAddr("10.0.1.1")
	s.Addresses = nil
	for at, starts := range [][]string{{"10.0.0.1", "2001:db8:0:1::"}, {"10.0.1.10", "2001:db8::"}} {
		for n := 1; n < 6; n++ {
			for _, start := range starts {
				s.Addresses = append(s.Addresses, eni.Address{Addr: netip.MustParseAddr(start + strconv.Itoa(n)), ENI: at})
			}
		}
	}
	if reserved {
		wanted := map[netip.Addr]eni.Reservation{}
		for i, a := range s.Addresses {
			if pod := i / 2; pod%2 == 1 { // each has both families
				wanted[a.Addr] = eni.Reservation{Topology: "db", Namespace: "default", Pod: fmt.Sprint("db-", pod)}
			}
		}
		s.Reserve(wanted, 0)
	}
	return s
}

// TestTornWritesGiveNothingTwice replays what a crash in the middle of any write of a random
// history may leave: nobody gets what a pod has, or had a moment ago.
func TestTornWritesGiveNothingTwice(t *testing.T) { tearHistory(t, history{}) }

// The same with pods that claim what is reserved for them: nobody else gets any of that.
func TestTornWritesGiveNobodyWhatIsReserved(t *testing.T) { tearHistory(t, history{reserved: true}) }

func tearHistory(t *testing.T, h history) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := newCache(t, tornCache(h.reserved))
	h.rng = rng
	tries := 0
	for range 40 {
		var what string
		old := bytesOf(t, c.Path)
		err := c.Update(t.Context(), func(s *ipam.State) error {
			what = h.change(s)
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		r := newTear(t, what, old, bytesOf(t, c.Path))
		r.tear(rng)
		tries += r.tries
	}
	if tries < 4000 {
		t.Errorf("only %d files were read", tries)
	}
}

// history makes the changes that plugin and agent make in place.
type history struct {
	rng      *rand.Rand
	reserved bool // some pods claim what is reserved for them
	pods     []string
	next     int
}

func (h *history) change(s *ipam.State) string {
	var some []netip.Addr
	for _, a := range s.Addresses {
		if h.rng.IntN(4) == 0 {
			some = append(some, a.Addr)
		}
	}
	switch h.rng.IntN(8) {
	case 0, 1, 2:
		name := fmt.Sprint("pod", h.next)
		h.next++
		o := owner(name)
		if h.next%3 == 0 {
			o.Kind = eni.Delegated
		}
		if h.reserved && h.next%2 == 0 {
			o.Pod = fmt.Sprint("db-", h.rng.IntN(10))
			if l, err := s.AssignReserved(o, "db", "", now); err == nil && len(l.Addresses) > 0 {
				h.pods = append(h.pods, name)
			}
			return name + " claims for " + o.Pod
		}
		if _, err := s.AssignPod(o, "", now); err == nil {
			h.pods = append(h.pods, name)
		}
		return "assign to " + name
	case 3, 4:
		if len(h.pods) == 0 {
			return "nothing"
		}
		name := h.pods[0]
		h.pods = h.pods[1:]
		s.Free(key(name), now)
		return "release " + name
	case 5:
		s.FreeIf(func(a eni.Address) bool { return a.Addr.As16()[15]%2 == 0 }, now)
		return "collect"
	case 6:
		s.StartRelease(some, now)
		s.MarkLost(some[:len(some)/2], now)
		return "drain"
	}
	s.UnmarkLost(some)
	s.CancelRelease(some, now)
	s.MarkHeld(map[netip.Addr]string{s.Addresses[h.rng.IntN(len(s.Addresses))].Addr: "route 10.0.0.0/24 dev br0"}, now)
	s.CoolHeld(some, now)
	return "restore"
}

// A whole new file comes by rename. What a disk may leave of that is none, or damaged.
func TestAFileOfWhichSectorsAreMissingIsNoOtherCache(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	file := mustEncode(t, small())
	for range 2000 {
		left := bytes.Clone(file)
		for n := range len(file) / lineSize {
			if rng.IntN(6) == 0 {
				clear(left[n*lineSize : (n+1)*lineSize])
			}
		}
		honest(t, "sectors of zeroes", left)
	}
}
