package bce

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// apiWire is the API and how Driver uses it, for faults on the client's side. With both
// families an ENI's first addresses come by two requests.
func apiWire(t *testing.T, v6 bool) cloudtest.Wire {
	families := 1
	if v6 {
		families = 2
	}
	return cloudtest.Wire{
		Action: func(r *http.Request, _ []byte) string { return actionOf(r) },
		Steps: map[string]cloudtest.Steps{
			"Limits":            {First: []string{"GetInstanceDetail", "GetInstanceEni"}},
			"Interfaces":        {First: []string{"ListEni", "GetInstanceEni"}}, // bare metal without ENIs has no list
			"Subnets":           {First: []string{"ListSubnets"}},
			"AssignAddresses":   {First: []string{"BatchAddPrivateIp", "InstanceBatchAddIp"}},
			"UnassignAddresses": {First: []string{"BatchDeletePrivateIp", "InstanceBatchDelIp"}},
			"DeleteInterface":   {First: []string{"DetachEniInstance"}, Last: []string{"DeleteEni"}},
			"CreateInterface": {First: []string{"CreateEni"}, Attach: []string{"AttachEniInstance"},
				Last: []string{"BatchAddPrivateIp"}, Before: families - 1},
		},
		// The codes: "Error codes" of Baidu's ENI reference, cloud.baidu.com/doc/VPC, and those
		// of its API as a whole.
		Refusals: map[cloudtest.Failure]cloudtest.Answer{
			cloudtest.Throttled:   answerOf(t, http.StatusTooManyRequests, "RateLimit"),
			cloudtest.Forbidden:   answerOf(t, http.StatusForbidden, "AccessDenied"),
			cloudtest.Unavailable: answerOf(t, http.StatusInternalServerError, "InternalError"),
		},
		Tries: func(action string, f cloudtest.Failure) int {
			if f == cloudtest.Throttled && (strings.HasPrefix(action, "Get") || strings.HasPrefix(action, "List")) {
				return readTries
			}
			return 1
		},
		Chunk: perCall,
	}
}

// actionOf names a request as the API's reference does, by its method, its path and, of
// a change of an ENI, the flag in its query.
func actionOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.URL.Path, "/v")
	parts := strings.Split(path, "/") // 1, eni, ID, privateIp, batchAdd
	if len(parts) > 2 && parts[2] != "quota" && !strings.HasPrefix(parts[2], "batch") {
		parts[2] = "{id}"
	}
	name := map[string]string{
		"GET eni": "ListEni", "POST eni": "CreateEni", "GET eni/{id}": "GetEniDetail", "DELETE eni/{id}": "DeleteEni",
		"POST eni/{id}/privateIp/batchAdd": "BatchAddPrivateIp", "POST eni/{id}/privateIp/batchDel": "BatchDeletePrivateIp",
		"GET subnet": "ListSubnets", "GET instance/{id}": "GetInstanceDetail", "GET vpcPort/{id}": "GetInstanceEni",
		"PUT instance/batchAddIp": "InstanceBatchAddIp", "PUT instance/batchDelIp": "InstanceBatchDelIp",
		"POST subnet/{id}": "CreateIpreserve", "GET subnet/{id}": "ListIpreserve",
	}[r.Method+" "+strings.Join(parts[1:], "/")]
	for flag, change := range map[string]string{"attach": "AttachEniInstance", "detach": "DetachEniInstance"} {
		if r.Method == http.MethodPut && r.URL.Query().Has(flag) {
			name = change
		}
	}
	return name
}

// answerOf is an error as the API writes it.
func answerOf(t *testing.T, status int, code string) cloudtest.Answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"requestId": "8c9bf5e4-ed25-4a5b-a5b2-example", "code": code, "message": code + "."})
	must(t, err)
	return cloudtest.Answer{Status: status, Header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}}, Body: string(body)}
}

// withFaults puts a Transport between a driver and its endpoint.
func withFaults(t *testing.T, d *Driver, v6 bool) *cloudtest.Transport {
	tr := cloudtest.NewTransport(t, d.base, apiWire(t, v6))
	d.base = tr
	return tr
}

// detachBy detaches an ENI as another client of the account would, and waits until that
// shows.
func detachBy(t *testing.T, d *Driver, id string) {
	t.Helper()
	asked := false
	for range 60 {
		i, err := d.byID(t.Context(), id)
		must(t, err)
		switch {
		case i.State == driver.Attached && !asked:
			must(t, d.Detach(t.Context(), i, "detached-by-another-"+id+i.Instance))
			asked = true
		case i.State == driver.Loose && asked:
			return
		}
		time.Sleep(d.pause)
	}
	t.Fatalf("ENI %s stays attached", id)
}

// moveBy detaches an ENI and begins to attach it to another instance.
func moveBy(t *testing.T, d *Driver, id, to string) {
	t.Helper()
	detachBy(t, d, id)
	_, err := d.Attach(t.Context(), driver.Attach{ID: id, Instance: to, Token: "moved-by-another-" + id})
	must(t, err)
}
