package operator

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// answered is a status that was written, and what the API server has kept of it where that is something else: an API server with older
// kinds takes away a field that it does not know, and says that the write is done. What is to be written next is compared with what was sent,
// or it would be written without end.
type answered struct {
	sent, kept crd.NodeNetworkStatus
	broken     bool // what the protocol goes by is not kept
}

// answerTo returns what there is to remember of an answer, nil if all was kept.
func answerTo(sent, kept crd.NodeNetworkStatus) *answered {
	if sameContent(sent, kept) || len(lackingFields(content(sent), content(kept))) == 0 { // a time may come back with another zone
		return nil
	}
	return &answered{sent, kept, len(lackingFields(promised(sent), promised(kept))) > 0}
}

// covers tells whether a next status was sent already, and the object is as the API server has kept it.
func (a *answered) covers(is, next crd.NodeNetworkStatus) bool {
	return a != nil && !a.broken && sameContent(a.kept, is) && sameContent(a.sent, next)
}

// isLike tells whether another answer kept the same, but for the numbers that each write has.
func (a *answered) isLike(b *answered) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := content(a.kept), content(b.kept)
	x.Revision, y.Revision, x.Epoch, y.Epoch = 0, 0, 0, 0
	return reflect.DeepEqual(x, y)
}

// promised returns of a status what the protocol goes by: what a later leader has to know. What an instance carries the cloud tells it again.
func promised(s crd.NodeNetworkStatus) (out crd.NodeNetworkStatus) {
	read, err := s.Read()
	if err != nil {
		return s
	}
	read.Limits, read.Leaders = eni.Limits{}, nil // without the latter an agent that was away knows less of a store that was put back
	out.Write(read)
	return out
}

// noteAnswer takes in what the API server has kept of a node's status. Where that is less nothing hurries: pods get no address by a write
// that changes nothing. If the answer is the same as the one before the next write waits for longer each time.
func (t *term) noteAnswer(node *member, sent, written *crd.NodeNetwork, now order.Moment) {
	before := node.answered
	if node.answered = answerTo(sent.Status, written.Status); node.answered == nil {
		return
	}
	unkept := lackingFields(content(sent.Status), content(written.Status))
	t.tellKinds(Notice{Kind: "NodeNetwork", Name: written.Name, UID: string(written.UID)}, unkept)
	if node.answered.isLike(before) {
		node.pause = min(max(2*node.repeated, apart), longestPause)
		node.barred = now.Mono + node.pause
	}
	node.repeated = node.pause
}

// tellKinds tells people that the installed kinds lack fields: once of each, whichever object shows it first.
func (o *Operator) tellKinds(notice Notice, unkept []string) {
	unkept = slices.DeleteFunc(unkept, func(field string) bool { return o.toldKinds[notice.Kind+field] })
	if len(unkept) == 0 {
		return
	}
	if o.toldKinds == nil {
		o.toldKinds = map[string]bool{}
	}
	for _, field := range unkept {
		o.toldKinds[notice.Kind+field] = true
	}
	fields := strings.Join(unkept, ", ")
	o.o.Log.Warn("the API server does not keep what is written: the kinds are older than this operator: apply conf/kubernetes/crds", "kind", notice.Kind, "object", notice.Name, "fields of its status", fields)
	notice.Warning, notice.Reason = true, "KindsOutdated"
	notice.Message = fmt.Sprintf("the kinds are older than this operator, and its status lacks %s: apply conf/kubernetes/crds", fields)
	o.tellPeople(notice)
}

// lackingFields returns the fields of a value that another one of its type lacks or has otherwise, as JSON names them.
func lackingFields(a, b any) (fields []string) {
	diff(plain(a), plain(b), "", func(field string) { fields = append(fields, field) })
	slices.Sort(fields)
	return slices.Compact(fields)
}

// plain returns a value as JSON has it: without what no API server could keep, such as the zone of a time.
func plain(v any) (out any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return v
	}
	return out
}

// diff tells of each field in which b is not as a.
func diff(a, b any, at string, tell func(field string)) {
	switch a := a.(type) {
	case map[string]any:
		if b, is := b.(map[string]any); is {
			for key, value := range a {
				diff(value, b[key], strings.TrimPrefix(at+"."+key, "."), tell)
			}
			return
		}
	case []any:
		if b, is := b.([]any); is && len(a) == len(b) {
			for i, value := range a {
				diff(value, b[i], at, tell)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		tell(at)
	}
}
