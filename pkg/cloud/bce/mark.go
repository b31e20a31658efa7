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

// markWord is the first word of our descriptions. A description may have 200 characters. The
// words of ours have at most 7, 1, 40, 3, 13, 64, 32 and 39, and seven spaces between them: it
// fits, because the 40 are for an instance's ID, which has about ten.
const markWord = "enipool"

// markText writes a mark as an ENI's description: "enipool 1 INSTANCE INDEX MILLISECONDS TOKEN
// CLUSTER IPV6", with "-" for no cluster and no address. ok is false for a mark that could not
// be read again.
func markText(mark driver.Mark) (text string, ok bool) {
	cluster, v6 := "-", "-"
	if mark.Cluster != "" {
		cluster = mark.Cluster
	}
	if mark.V6.IsValid() {
		v6 = mark.V6.String()
	}
	text = fmt.Sprintf("%s 1 %s %d %d %s %s %s", markWord, mark.Instance, mark.Index, mark.Asked.UnixMilli(), mark.Token, cluster, v6)
	again, ok := parseMark(text)
	again.Asked = mark.Asked // the text only has milliseconds, which is enough: creation times have seconds
	return text, ok && again == mark && len(mark.Cluster) <= 32
}

// parseMark reads a description. ok is false if it is not a mark.
func parseMark(text string) (mark driver.Mark, ok bool) {
	words := strings.Split(text, " ")
	if len(words) != 8 || words[0] != markWord || words[1] != "1" {
		return driver.Mark{}, false
	}
	// People can edit descriptions. One that is not exactly as markText writes it is no mark, so
	// its ENI is unmanaged, and is neither used nor deleted.
	index, err := strconv.Atoi(words[3])
	if err != nil || index < 1 || index > eni.MaxIndex {
		return driver.Mark{}, false
	}
	asked, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		return driver.Mark{}, false
	}
	mark = driver.Mark{Instance: words[2], Index: index, Asked: time.UnixMilli(asked).UTC(), Token: words[5], Cluster: words[6]}
	if mark.Cluster == "-" {
		mark.Cluster = ""
	}
	if words[7] != "-" {
		if mark.V6, err = netip.ParseAddr(words[7]); err != nil || !mark.V6.Is6() || mark.V6.Zone() != "" {
			return driver.Mark{}, false
		}
	}
	if mark.Instance == "" || !driver.ValidToken(mark.Token) {
		return driver.Mark{}, false
	}
	return mark, true
}

// nameOf returns the name of the ENIs made for an instance: lists select by it, not by descriptions.
func nameOf(instance string) string { return "enipool-" + instance }
