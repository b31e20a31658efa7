package nodecache

import (
	"fmt"
	"strconv"
	"strings"
)

// escape makes a name one word of printable ASCII, so that whatever a runtime
// passes (CNI_ARGS are free text) can't break a line. An empty name is "-".
func escape(name string) string {
	if name == "" {
		return "-"
	}
	plain := name != "-"
	for i := 0; i < len(name) && plain; i++ {
		plain = name[i] > ' ' && name[i] < 0x7f && name[i] != '%'
	}
	if plain {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c > ' ' && c < 0x7f && c != '%' && name != "-" {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescape is the inverse of escape. A cut escape at the end is dropped.
func unescape(word string) string {
	if word == "-" {
		return ""
	}
	if strings.IndexByte(word, '%') < 0 {
		return word
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '%' {
			b.WriteByte(word[i])
			continue
		}
		if i+2 < len(word) {
			if c, err := strconv.ParseUint(word[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
			}
		}
		i += 2
	}
	return b.String()
}
