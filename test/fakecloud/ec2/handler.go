package ec2

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// version of the API, and the namespace of its answers.
const (
	version   = "2016-11-15"
	namespace = "http://ec2.amazonaws.com/doc/" + version + "/"
)

// maxBody is how long a request may be, in bytes.
const maxBody = 1 << 20

// effect is what an action does when its request has been read. What it returns
// is the answer's content.
type effect func(tx *sim.Tx) (any, error)

// action is one of the API. Its prepare reads the request and checks it as far as
// that goes without the account.
type action struct {
	mutates bool
	prepare func(e *Endpoint, q *query) effect
}

// actions are all of them, by name.
func actions() map[string]action {
	return map[string]action{
		"DescribeInstances":               {false, describeInstances},
		"DescribeInstanceTypes":           {false, describeInstanceTypes},
		"DescribeNetworkInterfaces":       {false, describeNetworkInterfaces},
		"DescribeSubnets":                 {false, describeSubnets},
		"DescribeSecurityGroups":          {false, describeSecurityGroups},
		"DescribeVpcs":                    {false, describeVpcs},
		"DescribeTags":                    {false, describeTags},
		"CreateNetworkInterface":          {true, createNetworkInterface},
		"AttachNetworkInterface":          {true, attachNetworkInterface},
		"ModifyNetworkInterfaceAttribute": {true, modifyNetworkInterfaceAttribute},
		"DetachNetworkInterface":          {true, detachNetworkInterface},
		"DeleteNetworkInterface":          {true, deleteNetworkInterface},
		"AssignPrivateIpAddresses":        {true, assignPrivateIPAddresses},
		"UnassignPrivateIpAddresses":      {true, unassignPrivateIPAddresses},
		"AssignIpv6Addresses":             {true, assignIPv6Addresses},
		"UnassignIpv6Addresses":           {true, unassignIPv6Addresses},
		"CreateSubnetCidrReservation":     {true, createReservation},
		"DeleteSubnetCidrReservation":     {true, deleteReservation},
		"GetSubnetCidrReservations":       {false, getReservations},
		"CreateTags":                      {true, createTags},
		"DeleteTags":                      {true, deleteTags},
	}
}

// Handler returns the Query API.
func (e *Endpoint) Handler() http.Handler {
	known := actions()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := e.requestID()
		name, body, answer, err := e.serve(known, r)
		status := http.StatusOK
		var text []byte
		if err == nil {
			text, err = write(name, id, body)
		}
		if err != nil {
			status, text = writeError(id, err)
		}
		e.stamp(w, "text/xml;charset=UTF-8")
		w.Header().Set("X-Amzn-Requestid", id)
		answer.Send(w, status, text)
	})
}

// serve reads a request and carries it out.
func (e *Endpoint) serve(known map[string]action, r *http.Request) (name string, body any, n sim.Answer, err error) {
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return "", nil, n, refuse("MalformedQueryString", "The request can't be read or is too long.")
	}
	if err := e.authenticate(r, raw); err != nil {
		return "", nil, n, err
	}
	form, err := readForm(r, raw)
	if err != nil {
		return "", nil, n, refuse("MalformedQueryString", "The query string contains a syntax error.")
	}
	name = form.Get("Action")
	act, ok := known[name]
	switch {
	case name == "":
		return "", nil, n, refuse("MissingAction", "The request is missing an action or a required parameter.")
	case !ok:
		return "", nil, n, refuse("InvalidAction", "The action %s is not valid for this web service.", name)
	case form.Get("Version") != version:
		return "", nil, n, refuse("InvalidAction", "The action %s is not valid for version %q.", name, form.Get("Version"))
	}
	q := newQuery(form)
	dry := q.bool("DryRun")
	do := act.prepare(e, q)
	call := sim.Call{Action: name, Mutates: act.mutates, Bucket: q.bucket, Token: q.token, Params: q.params()}
	if e.o.Quirks.NoTokens {
		call.Token = ""
	}
	body, n, err = sim.Do(r.Context(), e.a, call, func(tx *sim.Tx) (any, error) {
		switch {
		case !e.allows(name):
			return nil, refuse("UnauthorizedOperation", "You are not authorized to perform this operation. "+
				"User: arn:aws:iam::%s:user/node is not authorized to perform: ec2:%s", e.a.Options().Owner, name)
		case q.failed() != nil:
			return nil, q.failed()
		case dry:
			return nil, refuse("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
		}
		return do(tx)
	})
	return name, body, n, err
}

// readForm returns the parameters of a request, from its body or its URL.
func readForm(r *http.Request, body []byte) (url.Values, error) {
	if r.Method == http.MethodGet {
		return url.ParseQuery(r.URL.RawQuery)
	}
	return url.ParseQuery(string(body))
}

// allows tells whether the action may be called.
func (e *Endpoint) allows(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.allowed == nil {
		return true
	}
	for _, pattern := range e.allowed {
		if ok, _ := path.Match(strings.TrimPrefix(pattern, "ec2:"), name); ok {
			return true
		}
	}
	return false
}

// write makes the answer of an action.
func write(action, id string, body any) ([]byte, error) {
	var content bytes.Buffer
	if err := xml.NewEncoder(&content).EncodeElement(body, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		return nil, fmt.Errorf("write answer of %s: %w", action, err)
	}
	inner := bytes.TrimSuffix(bytes.TrimPrefix(content.Bytes(), []byte("<x>")), []byte("</x>"))
	return fmt.Appendf(nil, "%s<%sResponse xmlns=%q><requestId>%s</requestId>%s</%sResponse>",
		xml.Header, action, namespace, id, inner, action), nil
}
