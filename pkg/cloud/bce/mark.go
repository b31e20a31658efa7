package bce

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// A description may have 200 characters. The words of ours have at most 7, 1, 40, 3, 13,
// 64, 32 and 39.
const markWord = "enipool"

// describe is the description of an ENI with a mark: "enipool 1 INSTANCE INDEX
// MILLISECONDS TOKEN CLUSTER IPV6", with "-" for what is not. ok is false for a mark that
// could not be read again.
func describe(m driver.Mark) (text string, ok bool) {
	cluster, v6 := "-", "-"
	if m.Cluster != "" {
		cluster = m.Cluster
	}
	if m.V6.IsValid() {
		v6 = m.V6.String()
	}
	text = fmt.Sprintf("%s 1 %s %d %d %s %s %s", markWord, m.Instance, m.Index, m.Asked.UnixMilli(), m.Token, cluster, v6)
	again, ok := parseMark(text)
	again.Asked = m.Asked // which is kept in milliseconds, enough beside creation times in seconds
	return text, ok && again == m && len(m.Cluster) <= 32
}

// parseMark reads a description; ok is false for one that is none of ours.
func parseMark(text string) (m driver.Mark, ok bool) {
	words := strings.Split(text, " ")
	if len(words) != 8 || words[0] != markWord || words[1] != "1" {
		return driver.Mark{}, false
	}
	index, err := strconv.Atoi(words[3])
	if err != nil || index < 1 || index > eni.MaxIndex {
		return driver.Mark{}, false
	}
	asked, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		return driver.Mark{}, false
	}
	m = driver.Mark{Instance: words[2], Index: index, Asked: time.UnixMilli(asked).UTC(), Token: words[5], Cluster: words[6]}
	if m.Cluster == "-" {
		m.Cluster = ""
	}
	if words[7] != "-" {
		if m.V6, err = netip.ParseAddr(words[7]); err != nil || !m.V6.Is6() || m.V6.Zone() != "" {
			return driver.Mark{}, false
		}
	}
	if m.Instance == "" || !validToken(m.Token) {
		return driver.Mark{}, false
	}
	return m, true
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
