package firewall

import (
	"bytes"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// nftElements are those of a set or map; known is whether they could be read.
type nftElements struct {
	list            []nftables.SetElement
	interval, known bool
}

func (n nftRules) readSet(name string) nftElements {
	found, read := n.sets[name]
	if read {
		return found
	}
	set, err := n.c.GetSetByName(n.table, name)
	if err == nil {
		found.interval = set.Interval
		found.list, err = n.c.GetSetElements(set)
	}
	found.known = err == nil
	n.sets[name] = found
	return found
}

// takeLookup finds the packet in a set, or its verdict in a map.
func (p *nftPacket) takeLookup(e *expr.Lookup) {
	set := p.rules.readSet(e.SetName)
	key := p.readKnown(e.SourceRegister, unix.IFNAMSIZ)
	if len(set.list) > 0 {
		key = p.readKnown(e.SourceRegister, len(set.list[0].Key))
	}
	isMap := e.IsDestRegSet
	found, value, sure := findElement(set.list, key)
	switch {
	case isMap && e.DestRegister != unix.NFT_REG_VERDICT: // a value, for a statement
		p.narrowMatch(mayMatch)
		p.load(e.DestRegister, nil)
	case !set.known || len(set.list) > 0 && key == nil || !sure || set.interval && isMap || p.walk.flow.mayGetElement(key, set.list):
		p.narrowMatch(mayMatch)
		if isMap {
			p.view.action = decidesElsewhere
		}
	case isMap && found:
		if v := decodeVerdict(value); v != nil {
			p.takeVerdict(v)
		}
	case e.Invert:
		p.narrowMatch(matchIf(!found))
	default:
		p.narrowMatch(matchIf(found))
	}
}

// findElement returns whether the key is in the set, and the value it has there. An interval is
// two elements, its start and its end, so in their order the last one that is not above the key
// says whether the key is in one. It is not sure about sets of other kinds.
func findElement(list []nftables.SetElement, key []byte) (found bool, value []byte, sure bool) {
	slices.SortFunc(list, func(a, b nftables.SetElement) int { return bytes.Compare(a.Key, b.Key) })
	interval := slices.ContainsFunc(list, func(e nftables.SetElement) bool { return e.IntervalEnd })
	for _, e := range list {
		if len(e.Key) != len(key) || e.KeyEnd != nil {
			return false, nil, false
		}
		switch c := bytes.Compare(e.Key, key); {
		case c == 0 && !e.IntervalEnd:
			return true, e.Val, true
		case c <= 0 && interval:
			found = !e.IntervalEnd
		}
	}
	return found, nil, true
}
