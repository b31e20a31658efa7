package nodecache

import (
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// An address that others hold stands in the file as one that cools for ever, and
// behind that what a reader of before does not read:
//
//	10.0.1.4    1 cooling   4294967295.000 held 1234.567 route 10.0.1.4 dev eni5f scope link (table main)
//
// A plugin and an agent of before, which may use the same file while a node is
// upgraded, then neither hand the address out nor give it to the cloud. A state of
// its own they would call a damaged record, and STATUS would fail.

// heldSince is the time since boot that says so: 136 years, the longest that the
// field holds.
const heldSince = 4294967295 * time.Second

// maxCause is how much of a cause is kept: it only informs, and the rest of the line
// is needed for what comes before it.
const maxCause = 300

// heldName begins what readers of before do not read.
const heldName = "held"

func encodeHeld(address *eni.Address) string {
	since := strings.TrimSpace(encodeSince(address.Since))
	words := []string{encodeStart(address, eni.Cooling.String(), heldSince), heldName, since, plainLine(address.HeldBy, maxCause)}
	return strings.TrimRight(strings.Join(words, " "), " ")
}

// decodeHeld reads what stands behind the time of a held address. Nothing does where
// a writer of before wrote the line again: then nobody knows what holds it.
func decodeHeld(text []byte, address *eni.Address) {
	address.State, address.Since = eni.Held, 0
	word, text := nextField(text)
	if string(word) != heldName {
		return
	}
	word, text = nextField(text)
	if since, err := decodeSince(word); err == nil {
		address.Since = since
	}
	address.HeldBy = plainLine(string(text), maxCause)
}
