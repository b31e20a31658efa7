package aws

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// rights is IAM in front of an endpoint: a call must be allowed on each resource that it
// touches, by what docs.aws.amazon.com/service-authorization/latest/reference/list_ec2.html
// names for it.
type rights struct {
	t         *testing.T
	policy    policy
	partition string
	account   *sim.Account
	asked     atomic.Int64
	used      sync.Map // what was allowed, by use
}

// use is that a statement allowed an action.
type use struct{ sid, action string }

// question is whether an action is allowed on a resource.
type question struct {
	action   string
	resource string // of an ARN, such as "subnet/subnet-a"; "" for actions that know none
	context  map[string]string
}

func (r *rights) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		form, err2 := url.ParseQuery(string(body))
		if err != nil || err2 != nil {
			r.t.Errorf("a request that can't be read: %v, %v", err, err2)
		}
		for _, q := range r.questions(form) {
			r.asked.Add(1)
			if !r.allows(q) {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, refusal("UnauthorizedOperation", "You are not authorized to perform this operation. "+q.action+" on "+q.resource))
				return
			}
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, req)
	})
}

// questions are those that a call raises. Of what does not exist it raises none: EC2 says
// that it is not found.
func (r *rights) questions(form url.Values) (list []question) {
	action := form.Get("Action")
	ask := func(resource string, context map[string]string) {
		list = append(list, question{"ec2:" + action, resource, context})
	}
	groups := func() {
		for name, values := range form {
			if strings.HasPrefix(name, "SecurityGroupId.") {
				ask("security-group/"+values[0], nil)
			}
		}
	}
	r.account.View(0, func(tx *sim.Tx) {
		eni := func(id string) {
			if n, err := tx.Interface(id); err == nil {
				ask("network-interface/"+id, contextOf("aws:ResourceTag/", n.Tags))
			}
		}
		instance := func(id string) {
			if i, err := tx.Instance(id); err == nil {
				ask("instance/"+id, contextOf("aws:ResourceTag/", i.Tags))
			}
		}
		switch {
		case strings.HasPrefix(action, "Describe"), strings.Contains(action, "SubnetCidrReservation"):
			ask("", nil)
		case action == "CreateNetworkInterface":
			ask("subnet/"+form.Get("SubnetId"), nil)
			tags := map[string]string{}
			groups()
			for name, values := range form {
				if nth, found := strings.CutSuffix(name, ".Key"); found && strings.HasPrefix(name, "TagSpecification.1.Tag.") {
					tags[values[0]] = form.Get(nth + ".Value")
				}
			}
			context := contextOf("aws:RequestTag/", tags)
			ask("network-interface/*", context)
			if len(tags) > 0 {
				context["ec2:CreateAction"] = action
				list = append(list, question{"ec2:CreateTags", "network-interface/*", context})
			}
		case action == "DetachNetworkInterface":
			for _, n := range tx.Interfaces() {
				if n.Attachment != nil && n.Attachment.ID == form.Get("AttachmentId") {
					eni(n.ID)
					instance(n.Attachment.Instance)
				}
			}
		default:
			eni(form.Get("NetworkInterfaceId"))
			instance(form.Get("InstanceId"))
			groups()
			if n, err := tx.Interface(form.Get("NetworkInterfaceId")); err == nil && n.Attachment != nil && form.Has("Attachment.AttachmentId") {
				instance(n.Attachment.Instance)
			}
		}
	})
	return list
}

func contextOf(prefix string, tags map[string]string) map[string]string {
	context := map[string]string{}
	for key, value := range tags {
		context[prefix+key] = value
	}
	return context
}

func (r *rights) allows(q question) bool {
	arn := fmt.Sprintf("arn:%s:ec2:eu-test-1:111122223333:%s", r.partition, q.resource)
	if q.resource == "" {
		arn = ""
	}
	for _, s := range r.policy.Statement {
		if s.Effect != "Allow" {
			r.t.Fatalf("%s: nothing here knows the effect %q", s.Sid, s.Effect)
		}
		if s.has(q.action) && s.covers(arn) && s.holds(r.t, q.context) {
			r.used.Store(use{s.Sid, q.action}, true)
			return true
		}
	}
	return false
}

func (s statement) has(action string) bool {
	for _, a := range s.Action {
		if a == action {
			return true
		}
	}
	return false
}

// covers matches ARNs by their parts: a star goes not beyond a colon.
func (s statement) covers(arn string) bool {
	for _, pattern := range s.Resource {
		if pattern == "*" || regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[^:]*")+"$").MatchString(arn) {
			return true
		}
	}
	return false
}

// holds: a key that is not there matches no value, as docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html says.
func (s statement) holds(t *testing.T, context map[string]string) bool {
	for operator, keys := range s.Condition {
		for key, want := range keys {
			value, there := context[key]
			switch operator {
			case "StringEquals":
				if !there || value != want {
					return false
				}
			case "Null":
				if fmt.Sprint(!there) != want {
					return false
				}
			default:
				t.Fatalf("%s: nothing here knows the operator %q", s.Sid, operator)
			}
		}
	}
	return true
}
