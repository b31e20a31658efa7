// Package convert makes of a NodeNetwork, as the API server has it, the values that pkg/order decides
// by, and the other way round. Both sides use it.
package convert

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// Object returns the copy of a NodeNetwork. What it can't read of the status is an error: a part of it
// would look like addresses that the cloud has taken.
func Object(n *crd.NodeNetwork) (order.Object, error) {
	spec, asks, err := Spec(n.Spec)
	status, tells, wrong := Status(n.Status)
	if err = errors.Join(err, wrong); err != nil {
		return order.Object{}, fmt.Errorf("read NodeNetwork %s: %w", n.Name, err)
	}
	return order.Object{Version: n.ResourceVersion, UID: string(n.UID), Generation: n.Generation,
		View: order.View{Spec: spec, Status: status}, Asks: asks, Tells: tells}, nil
}

// reader reads texts and keeps what is wrong.
type reader struct{ errs []error }

func (r *reader) noteWrong(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

// parsePrefix reads an address, which is a host prefix then, or a delegated prefix.
func (r *reader) parsePrefix(text string) (p netip.Prefix) {
	var err error
	if strings.Contains(text, "/") {
		p, err = netip.ParsePrefix(text)
	} else {
		var a netip.Addr
		a, err = netip.ParseAddr(text)
		p = netip.PrefixFrom(a, a.BitLen())
	}
	r.noteWrong(err)
	return p
}

func (r *reader) parsePrefixes(texts []string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, r.parsePrefix(text))
	}
	return list
}

// prefixText is the opposite of parsePrefix.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

func prefixTexts(prefixes []netip.Prefix) (list []string) {
	for _, p := range prefixes {
		list = append(list, prefixText(p))
	}
	return list
}

// families are the words for the families.
var families = map[string]eni.Family{"IPv4": eni.IPv4, "IPv6": eni.IPv6}

func familyText(f eni.Family) string {
	for text, is := range families {
		if is == f {
			return text
		}
	}
	return f.String()
}

// timeOf returns the time, zero for none.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// timeAt is the opposite of timeOf.
func timeAt(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
