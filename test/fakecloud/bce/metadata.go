package bce

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Metadata returns the metadata service of an instance. It answers texts, and an
// empty one for what it does not know.
func (e *Endpoint) Metadata(instance string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /1.0/meta-data/{name...}", func(w http.ResponseWriter, r *http.Request) {
		e.tell(w, r, func(tx *sim.Tx) (any, error) { return e.about(tx, instance, r.PathValue("name")) })
	})
	mux.HandleFunc("GET /latest/meta-data/sts-credential", func(w http.ResponseWriter, r *http.Request) {
		e.tell(w, r, func(*sim.Tx) (any, error) { return e.role() })
	})
	return mux
}

// tell answers what an effect returns as text.
func (e *Endpoint) tell(w http.ResponseWriter, r *http.Request, do effect) {
	text, answer, err := sim.Do(r.Context(), e.a, sim.Call{Action: "Metadata"}, do)
	e.stamp(w, "text/plain")
	status := http.StatusOK
	if err != nil {
		status, text = http.StatusNotFound, "Not Found"
		if sim.ReasonOf(err) == sim.Unavailable {
			status = http.StatusInternalServerError
		}
	}
	answer.Send(w, status, fmt.Append(nil, text))
}

// about returns what an instance's metadata says.
func (e *Endpoint) about(tx *sim.Tx, id, name string) (any, error) {
	m, i, err := own(tx, id)
	if err != nil {
		return nil, err
	}
	t, err := tx.Type(m.Type)
	if err != nil {
		return nil, err
	}
	zone := i.Zone[strings.LastIndexByte(i.Zone, '-')+1:]
	switch name {
	case "instance-shortid":
		return m.ID, nil
	case "instance-name":
		return m.Node, nil
	case "instance-type":
		return t.Name, nil
	case "instance-type-ex":
		if kindOf(t) == "bcc" {
			return "bcc", nil
		}
		return "bbc", nil // of all bare metal: the type's name tells which
	case "region":
		return e.a.Options().Region, nil
	case "vpc-id":
		return tx.VPC().ID, nil
	case "subnet-id":
		return i.Subnet, nil
	case "azone":
		return "zone" + strings.ToUpper(zone), nil
	case "local-ipv4":
		return i.Primary.String(), nil
	case "mac":
		return i.MAC, nil
	}
	return "", nil
}

// role returns the credentials of the instances' role, new ones when the old ones
// have run out.
func (e *Endpoint) role() (any, error) {
	if !e.o.Role {
		return nil, &sim.Error{Reason: sim.NoSuchResource, Detail: "the instance has no role"}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.a.Clock().Now()
	if !e.issued.ends.After(now) {
		e.roles++
		sum := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, "role ", e.roles)))
		e.issued = key{id: "role-" + sum[:12], secret: sum[12:44], token: "session-" + sum[44:], ends: now.Add(e.o.RoleTTL)}
		e.keys[e.issued.id] = e.issued
	}
	text, err := json.Marshal(map[string]string{"accessKeyId": e.issued.id, "secretAccessKey": e.issued.secret,
		"sessionToken": e.issued.token, "createTime": now.UTC().Format(time.RFC3339), "expiration": e.issued.ends.UTC().Format(time.RFC3339)})
	return string(text), err
}
