package bce

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// maxBody is how long a request may be, in bytes.
const maxBody = 1 << 20

// request is a call as its action reads it.
type request struct {
	*http.Request
	id   string // in the path
	body []byte
}

// flag tells whether the query has a parameter, whatever its value.
func (r *request) flag(name string) bool { return r.URL.Query().Has(name) }

// param returns a parameter of the query.
func (r *request) param(name string) string { return r.URL.Query().Get(name) }

// read decodes the body.
func (r *request) read(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return refuse("MalformedJSON", http.StatusBadRequest, "The JSON you provided was not well-formed")
	}
	return nil
}

// effect is what an action does; what it returns is the answer's content.
type effect func(tx *sim.Tx) (any, error)

// action is one of the API. Its prepare reads the request and checks it as far as
// that goes without the account.
type action struct {
	name    string
	mutates bool
	prepare func(e *Endpoint, r *request) (effect, error)
}

// nothing is the answer of an action that has none.
type nothing struct{}

// actionOf returns the action of a method and path pattern. One path may be several
// actions by a flag in its query.
func actionOf(pattern string, r *request) (action, bool) {
	switch pattern {
	case "GET /v1/eni":
		return action{"ListEni", false, listENI}, true
	case "POST /v1/eni":
		return action{"CreateEni", true, createENI}, true
	case "GET /v1/eni/quota":
		return action{"GetEniQuota", false, eniQuota}, true
	case "GET /v1/eni/{id}":
		return action{"GetEniDetail", false, eniDetail}, true
	case "GET /v1/eni/{id}/status":
		return action{"GetEniStatus", false, eniStatus}, true
	case "DELETE /v1/eni/{id}":
		return action{"DeleteEni", true, deleteENI}, true
	case "PUT /v1/eni/{id}":
		return changeOf(r)
	case "POST /v1/eni/{id}/privateIp":
		return action{"AddPrivateIp", true, addPrivateIP}, true
	case "DELETE /v1/eni/{id}/privateIp/{address}":
		return action{"DeletePrivateIp", true, deletePrivateIP}, true
	case "POST /v1/eni/{id}/privateIp/batchAdd":
		return action{"BatchAddPrivateIp", true, batchAddPrivateIP}, true
	case "POST /v1/eni/{id}/privateIp/batchAddCrossSubnet":
		return action{"BatchAddPrivateIpCrossSubnet", true, batchAddCrossSubnet}, true
	case "POST /v1/eni/{id}/privateIp/batchDel":
		return action{"BatchDeletePrivateIp", true, batchDeletePrivateIP}, true
	case "GET /v1/subnet":
		return action{"ListSubnets", false, listSubnets}, true
	case "GET /v1/subnet/{id}":
		return action{"GetSubnetDetail", false, subnetDetail}, true
	case "POST /v1/subnet/ipreserve":
		return action{"CreateIpreserve", true, createReserve}, true
	case "GET /v1/subnet/ipreserve":
		return action{"ListIpreserve", false, listReserves}, true
	case "DELETE /v1/subnet/ipreserve/{id}":
		return action{"DeleteIpreserve", true, deleteReserve}, true
	case "GET /v2/instance/{id}":
		return action{"GetInstanceDetail", false, instanceDetail}, true
	case "PUT /v2/instance/batchAddIp", "PUT /v1/instance/batchAddIp":
		return action{"InstanceBatchAddIp", true, instanceBatchAddIP}, true
	case "PUT /v1/instance/batchAddIpCrossSubnet":
		return action{"InstanceBatchAddIpCrossSubnet", true, instanceBatchAddIPCrossSubnet}, true
	case "PUT /v2/instance/batchDelIp", "PUT /v1/instance/batchDelIp":
		return action{"InstanceBatchDelIp", true, instanceBatchDelIP}, true
	case "GET /v1/vpcPort/{id}":
		return action{"GetInstanceEni", false, bareENI}, true
	}
	return action{}, false
}

func changeOf(r *request) (action, bool) {
	switch {
	case r.flag("attach"):
		return action{"AttachEniInstance", true, attachENI}, true
	case r.flag("detach"):
		return action{"DetachEniInstance", true, detachENI}, true
	case r.flag("modifyAttribute"):
		return action{"UpdateEni", true, updateENI}, true
	case r.flag("bindSg"):
		return action{"UpdateEniSecurityGroup", true, setGroups}, true
	case r.flag("bindEsg"):
		return action{"UpdateEniEnterpriseSecurityGroup", true, setGroups}, true
	}
	return action{}, false
}

// patterns are what Handler listens to.
var patterns = []string{
	"GET /v1/eni", "POST /v1/eni", "GET /v1/eni/quota", "GET /v1/eni/{id}", "GET /v1/eni/{id}/status", "DELETE /v1/eni/{id}",
	"PUT /v1/eni/{id}", "POST /v1/eni/{id}/privateIp", "DELETE /v1/eni/{id}/privateIp/{address}",
	"POST /v1/eni/{id}/privateIp/batchAdd", "POST /v1/eni/{id}/privateIp/batchAddCrossSubnet", "PUT /v1/instance/batchAddIpCrossSubnet", "POST /v1/eni/{id}/privateIp/batchDel",
	"GET /v1/subnet", "GET /v1/subnet/{id}", "GET /v2/instance/{id}",
	"POST /v1/subnet/ipreserve", "GET /v1/subnet/ipreserve", "DELETE /v1/subnet/ipreserve/{id}",
	"PUT /v2/instance/batchAddIp", "PUT /v1/instance/batchAddIp", "PUT /v2/instance/batchDelIp", "PUT /v1/instance/batchDelIp",
	"GET /v1/vpcPort/{id}",
}

// Handler returns the API: that of ENIs, subnets and instances at once.
func (e *Endpoint) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, pattern := range patterns {
		mux.HandleFunc(pattern, e.answer)
	}
	mux.HandleFunc("/", e.answer)
	return mux
}

func (e *Endpoint) answer(w http.ResponseWriter, r *http.Request) {
	id := e.requestID()
	e.stamp(w, "application/json;charset=UTF-8")
	w.Header().Set("X-Bce-Request-Id", id)
	content, answer, err := e.serve(r)
	status, text := http.StatusOK, []byte(nil)
	if err == nil {
		text, err = json.Marshal(content)
		if _, empty := content.(nothing); empty {
			text = nil
		}
	}
	if err != nil {
		status, text = writeError(w.Header(), id, err)
	}
	answer.Send(w, status, text)
}

// serve reads a request and carries it out.
func (e *Endpoint) serve(r *http.Request) (content any, n sim.Answer, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, n, refuse("InvalidHTTPRequest", http.StatusBadRequest, "There was an error in the body of your HTTP request.")
	}
	if err := e.authenticate(r); err != nil {
		return nil, n, err
	}
	req := &request{Request: r, id: r.PathValue("id"), body: body}
	act, ok := actionOf(r.Pattern, req)
	if !ok {
		return nil, n, refuse("InvalidURI", http.StatusBadRequest, "Could not parse the specified URI.")
	}
	token := r.URL.Query().Get("clientToken")
	if len(token) > 64 {
		return nil, n, invalid("the clientToken has more than 64 characters")
	}
	do, refused := act.prepare(e, req)
	call := sim.Call{Action: act.name, Mutates: act.mutates, Params: fmt.Sprintf("%s %s", r.URL.Path, body)}
	if act.mutates && !e.o.NoTokens {
		call.Token = token
	}
	return sim.Do(r.Context(), e.a, call, func(tx *sim.Tx) (any, error) {
		if e.denied[act.name] {
			return nil, refuse("AccessDenied", http.StatusForbidden, "Access denied.")
		}
		if refused != nil {
			return nil, refused
		}
		return do(tx)
	})
}
