package agent

import (
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// prefixes is how many delegated IPv4 prefixes a node has, and how they are used.
type prefixes struct {
	size    int  // addresses of each
	off     bool // new addresses come one by one
	there   int
	inUse   int // of those: some of their addresses are not free
	unused  int // free addresses of those in use, which can't be released before the others are free
	singles int // addresses that are of no prefix
}

// countPrefixes counts what the cache has of blocks of that kind, nothing where addresses never come in them.
func countPrefixes(b eni.Block, cached *ipam.State) (p prefixes) {
	if b.Size == 0 || cached == nil {
		return p
	}
	p.size, p.off = 1<<(eni.IPv4.Bits()-b.Bits), b.Size == 1
	type count struct{ all, free int }
	counts := map[netip.Prefix]count{}
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		if line.Family() != eni.IPv4 {
			continue
		}
		bits, _ := line.Addr.Prefix(b.Bits) // an IPv4 address has that many
		c := counts[bits]
		c.all++
		if line.State == eni.Free || line.State == eni.Releasing {
			c.free++
		}
		counts[bits] = c
	}
	for _, c := range counts {
		switch {
		case c.all < p.size:
			p.singles += c.all
		case c.free < c.all:
			p.there++
			p.inUse++
			p.unused += c.free
		default:
			p.there++
		}
	}
	return p
}

// line says what people have to know of the prefixes who wonder how many addresses there are, "" if there are none.
func (p prefixes) line() string {
	if p.there == 0 && (p.off || p.singles == 0) {
		return ""
	}
	text := fmt.Sprintf("%d of %d addresses each", p.there, p.size)
	if p.off {
		text = "turned off, and " + text + " are left"
	}
	if p.inUse > 0 {
		text += fmt.Sprintf("; %d in use", p.inUse)
	}
	if p.unused > 0 {
		text += fmt.Sprintf(", whose %d free addresses stay until all of a prefix are free", p.unused)
	}
	if p.singles > 0 && !p.off {
		text += "; " + p.singleWords()
	}
	return text
}

// singleWords says what keeps ENIs from prefixes, "" if nothing does.
func (p prefixes) singleWords() string {
	if p.singles == 0 || p.off {
		return ""
	}
	return fmt.Sprintf("%d single addresses take the room of a prefix each", p.singles)
}
