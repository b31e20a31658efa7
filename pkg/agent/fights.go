package agent

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/status"
)

const (
	// fightRepairs is how many repairs of one thing in a row make a fight: something
	// undoes them.
	fightRepairs = 10
	// fightPause is how long nothing is to be repaired when a row is at an end, and
	// fightAgain how often a fight that goes on is told.
	fightPause = 2 * time.Minute
	fightAgain = 10 * time.Minute
	// mostFights bounds what is kept.
	mostFights = 4096
)

// fights are what was put right lately, by what it was: where others undo the same again
// and again, each repair alone looks like the end of it.
type fights map[string]*fight

// fight is a row of repairs of one thing.
type fight struct {
	change      string        // the newest of them
	times       int           // how often
	first, last time.Duration // since boot
	told        time.Duration // when it was told last, 0 for never
}

// note takes in what one comparison put right, and returns of what is to be told that it
// is a fight: when it has become one, and while it goes on from time to time. pause is
// how long a row may rest.
func (f fights) note(changes []string, now, pause time.Duration) (tell []fight) {
	seen := map[string]bool{}
	for _, change := range changes {
		key, is := fightKey(change)
		if !is || seen[key] {
			continue
		}
		seen[key] = true
		row := f[key]
		if row == nil || now-row.last > pause {
			if row == nil && len(f) >= mostFights {
				continue
			}
			row = &fight{first: now}
			f[key] = row
		}
		row.change, row.last = change, now
		row.times++
		if row.isFight() && (row.told == 0 || now-row.told >= fightAgain) {
			row.told = now
			tell = append(tell, *row)
		}
	}
	return tell
}

// end forgets the rows that are at an end, and returns those that were fights.
func (f fights) end(now, pause time.Duration) (ended []fight) {
	for key, row := range f {
		if now-row.last <= pause {
			continue
		}
		delete(f, key)
		if row.isFight() {
			ended = append(ended, *row)
		}
	}
	slices.SortFunc(ended, mostFirst)
	return ended
}

// due is when the first fight of which nothing more comes is at an end, 0 for none: no comparison need come then.
func (f fights) due(pause time.Duration) (at time.Duration) {
	for _, row := range f {
		if ends := row.last + pause + 1; row.isFight() && (at == 0 || ends < at) {
			at = ends
		}
	}
	return at
}

// list returns the fights, the one of the most repairs first.
func (f fights) list() []fight {
	var list []fight
	for row := range maps.Values(f) {
		if row.isFight() {
			list = append(list, *row)
		}
	}
	slices.SortFunc(list, mostFirst)
	return list
}

// has tells whether the change is part of a fight.
func (f fights) has(change string) bool {
	key, is := fightKey(change)
	return is && f[key] != nil && f[key].isFight()
}

func mostFirst(a, b fight) int {
	return cmp.Or(cmp.Compare(b.times, a.times), strings.Compare(a.change, b.change))
}

func (f fight) isFight() bool { return f.times >= fightRepairs }

// fightKey names what a change is about, without what differs from time to time: how many
// elements a set lacked, and which. Connections that are forgotten are no repair.
func fightKey(change string) (key string, is bool) {
	if strings.HasPrefix(change, "forget ") || strings.HasPrefix(change, "connections ") || strings.HasPrefix(change, "move ") {
		return "", false
	}
	for _, mark := range []string{" right:", " with "} {
		change, _, _ = strings.Cut(change, mark)
	}
	// Who removes a table is met after that, or in the midst of it.
	if table, _, is := strings.Cut(change, " from scratch:"); is {
		change = strings.Replace(table, "make table", "create table", 1)
	}
	return change, true
}

// kind is the first word of what the change is about.
func (f fight) kind() string {
	word, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(f.change, "add "), "remove "), " ")
	return word
}

// seek says who may undo the change, and how to find out. The kernel tells only of nftables
// which process it was.
func (f fight) seek() string {
	switch f.kind() {
	case "nftables:":
		return "the one that `nft monitor` names behind each change, on the node itself; " + whoStarts
	case "iptables", "ip6tables":
		return "a program that loads its own rules, as firewalld does; where iptables keeps its rules in nftables `nft monitor` names the process"
	case "sysctl":
		return "a second agent, or what applies /etc/sysctl.d again, as tuned does"
	case "limit":
		return "a program that sets queues of links; `tc monitor` shows when"
	}
	return "a second agent, systemd-networkd (ManageForeignRoutes=, ManageForeignRoutingPolicyRules=), NetworkManager or a script; `ip monitor` shows when"
}

// whoStarts is where people find what starts a process that is gone when they look.
const whoStarts = "what starts it: conf/TROUBLESHOOTING.md has the commands"

// Blamer is a Kernel that can tell who of others changed nftables last, after a time since boot. found
// tells whether it says where that process comes from, too.
type Blamer interface {
	Changer(since time.Duration) (text string, found bool)
}

// whoUndoes says who undoes the repair, "" where nobody knows.
func (a *Agent) whoUndoes(f fight) string {
	kernel, can := a.Kernel.(Blamer)
	if !can || !slices.Contains([]string{"nftables:", "iptables", "ip6tables"}, f.kind()) {
		return ""
	}
	text, found := kernel.Changer(f.first)
	if text == "" || found {
		return text
	}
	// It has ended, or the agent's container has PIDs of its own.
	return text + "; " + whoStarts
}

// noteRepairs tells people when repairs don't last.
func (a *Agent) noteRepairs(changes []string, now time.Duration) {
	told := a.fights.note(changes, now, a.fightPause())
	if len(told) == 0 {
		return
	}
	// Who flushes a table undoes the routes of all pods: that is one thing to tell.
	f := told[0]
	a.Log.Warn("what is repaired is undone again and again by something on this node", "change", f.change, "others", len(told)-1,
		"times", f.times, "within", (f.last - f.first).Round(time.Second), "who", cmp.Or(a.whoUndoes(f), f.seek()))
}

// tellFights tells which repairs don't last, and which do again.
func (a *Agent) tellFights(now time.Duration) {
	if ended := a.fights.end(now, a.fightPause()); len(ended) > 0 {
		f := ended[0]
		a.Log.Info("what was undone again and again stays", "change", f.change, "others", len(ended)-1,
			"times", f.times, "within", (f.last - f.first).Round(time.Second))
	}
	a.status.Undone = nil
	boot := a.Wall().Add(-now).Round(time.Second)
	for _, f := range a.fights.list() {
		a.status.Undone = append(a.status.Undone, status.Undone{Change: f.change, Times: f.times,
			First: boot.Add(f.first), Last: boot.Add(f.last), Who: f.seek(), By: a.whoUndoes(f), ShownFor: a.fightPause().String()})
	}
}

// fightPause is longer than what no event tells takes to be found twice.
func (a *Agent) fightPause() time.Duration { return max(fightPause, 2*a.conf.Resync) }
