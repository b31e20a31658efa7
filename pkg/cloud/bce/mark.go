package bce

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// mark is what an ENI's description says of it.
type mark struct {
	instance string
	index    int
	asked    time.Time // by the node's clock, in milliseconds: creation times are in seconds
	token    string
	cluster  string
	v6       netip.Addr // the primary IPv6 address, the zero Addr if it has none yet
}

// A description may have 200 characters. The words of this one have at most 7, 1,
// 40, 3, 13, 64, 32 and 39.
const markWord = "enipool"

// String is the description: "enipool 1 INSTANCE INDEX MILLISECONDS TOKEN CLUSTER
// IPV6", with "-" for what is not.
func (m mark) String() string {
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	v6 := ""
	if m.v6.IsValid() {
		v6 = m.v6.String()
	}
	return fmt.Sprintf("%s 1 %s %d %d %s %s %s", markWord, m.instance, m.index, m.asked.UnixMilli(), m.token, dash(m.cluster), dash(v6))
}

// parseMark reads a description; ok is false for one that String did not write.
func parseMark(text string) (m mark, ok bool) {
	words := strings.Split(text, " ")
	if len(words) != 8 || words[0] != markWord || words[1] != "1" {
		return mark{}, false
	}
	index, err := strconv.Atoi(words[3])
	if err != nil || index < 1 || index > eni.MaxIndex {
		return mark{}, false
	}
	asked, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		return mark{}, false
	}
	m = mark{instance: words[2], index: index, asked: time.UnixMilli(asked).UTC(), token: words[5], cluster: words[6]}
	if m.cluster == "-" {
		m.cluster = ""
	}
	if words[7] != "-" {
		if m.v6, err = netip.ParseAddr(words[7]); err != nil || !m.v6.Is6() || m.v6.Zone() != "" {
			return mark{}, false
		}
	}
	return m, m.instance != "" && validToken(m.token)
}

// validToken tells whether the token can be a word of a description.
func validToken(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return len(token) >= 1 && len(token) <= 64
}

// nameOf is the name of an instance's ENIs, the same for all of them.
func nameOf(instance string) string { return "enipool-" + instance }
