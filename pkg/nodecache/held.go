package nodecache

import (
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// An address that others hold is written as one that cools for ever, followed by words that
// readers of releases without held addresses ignore:
//
//	10.0.1.4    1 cooling   4294967295.000 held 1234.567 route 10.0.1.4 dev eni5f scope link (table main)
//
// A plugin and an agent of such a release, which may use the same file while a node is
// upgraded, then neither hand the address out nor release it. A state of its own would be a
// damaged record to them, and STATUS would fail.

// heldSince is the time since boot that marks such an address: 136 years, the longest that the
// field holds.
const heldSince = 4294967295 * time.Second

// maxCause is how much of a cause is kept: it only informs, and the rest of the line
// is needed for what comes before it.
const maxCause = 300

// heldName begins what such readers ignore.
const heldName = "held"

func encodeHeld(address *eni.Address) string {
	since := strings.TrimSpace(encodeSince(address.Since))
	words := []string{encodeStart(address, eni.Cooling.String(), heldSince), heldName, since, plainLine(address.HeldBy, maxCause)}
	return strings.TrimRight(strings.Join(words, " "), " ")
}

// decodeHeld reads what follows the time of a held address: nothing, if a release without held
// addresses wrote the line again. Then it is not known what holds it.
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
