package ec2

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The headers of sessions with the metadata service.
const (
	sessionHeader = "X-Aws-Ec2-Metadata-Token"
	ttlHeader     = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
)

// maxTTL is how long a session may last, in seconds.
const maxTTL = 21600

// Metadata returns the metadata service of an instance, as it answers at
// 169.254.169.254 there.
func (e *Endpoint) Metadata(instanceID string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", e.openSession)
	mux.HandleFunc("GET /latest/", func(w http.ResponseWriter, r *http.Request) {
		if !e.inSession(r.Header.Get(sessionHeader)) {
			e.stamp(w, "text/plain")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		e.serveMetadata(w, r, instanceID)
	})
	return mux
}

// openSession gives a token out. Requests that a proxy passed on get none.
func (e *Endpoint) openSession(w http.ResponseWriter, r *http.Request) {
	e.stamp(w, "text/plain")
	ttl, err := strconv.Atoi(r.Header.Get(ttlHeader))
	switch {
	case r.Header.Get("X-Forwarded-For") != "":
		w.WriteHeader(http.StatusForbidden)
		return
	case err != nil || ttl < 1 || ttl > maxTTL:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	now := e.a.Clock().Now()
	e.mu.Lock()
	e.ids++
	sum := sha256.Sum256(fmt.Append(nil, "session ", e.ids))
	token := base64.URLEncoding.EncodeToString(sum[:])
	maps.DeleteFunc(e.sessions, func(_ string, end time.Time) bool { return now.After(end) })
	e.sessions[token] = now.Add(time.Duration(ttl) * time.Second)
	e.mu.Unlock()
	w.Header().Set(ttlHeader, strconv.Itoa(ttl))
	_, _ = w.Write([]byte(token)) // who has gone does not hear of it
}

func (e *Endpoint) inSession(token string) bool {
	now := e.a.Clock().Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	end, ok := e.sessions[token]
	return ok && !now.After(end)
}

// serveMetadata answers with a value, or with a list of what is below.
func (e *Endpoint) serveMetadata(w http.ResponseWriter, r *http.Request, instance string) {
	values := e.metadata(instance)
	_, answer, err := sim.Do(r.Context(), e.a, sim.Call{Action: "Metadata", Free: true},
		func(*sim.Tx) (any, error) { return nil, nil })
	status, body := http.StatusOK, ""
	if err == nil {
		status, body = find(values, strings.TrimPrefix(r.URL.Path, "/latest/"))
	} else {
		status = statusOfMetadata(err)
	}
	kind := "text/plain"
	if strings.HasPrefix(body, "{") {
		kind = "application/json"
	}
	e.stamp(w, kind)
	answer.Send(w, status, []byte(body))
}

// statusOfMetadata is the HTTP status of a fault: the service has no codes.
func statusOfMetadata(err error) int {
	switch sim.ReasonOf(err) {
	case sim.Throttled:
		return http.StatusTooManyRequests
	case sim.Forbidden:
		return http.StatusForbidden
	case sim.NoSuchResource, sim.NoSuchInterface:
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// find returns the value at a path, or the names of what is below it.
func find(values map[string]string, path string) (int, string) {
	path = strings.TrimSuffix(path, "/")
	if v, ok := values[path]; ok {
		return http.StatusOK, v
	}
	names := map[string]bool{}
	for name := range values {
		below, ok := strings.CutPrefix(name, path+"/")
		if path == "" {
			below, ok = name, true
		}
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(below, "/"); deeper {
			below = first + "/"
		}
		names[below] = true
	}
	if len(names) == 0 {
		return http.StatusNotFound, ""
	}
	return http.StatusOK, strings.Join(slices.Sorted(maps.Keys(names)), "\n")
}

// metadata is all there is to know for an instance, by path. It is as old as
// MetadataLag says, the credentials excepted.
func (e *Endpoint) metadata(instance string) map[string]string {
	values := map[string]string{}
	var launched time.Time
	e.a.View(e.o.MetadataLag, func(tx *sim.Tx) {
		if i, err := tx.Instance(instance); err == nil && !i.Terminated {
			launched = i.Launched
			e.describeSelf(tx, i, values)
		}
	})
	if launched.IsZero() {
		return values
	}
	if e.o.Role != "" {
		values["meta-data/iam/info"] = e.roleInfo(launched)
		values["meta-data/iam/security-credentials/"+e.o.Role] = e.roleCredentials()
	}
	return values
}

// describeSelf fills in what an instance knows of itself.
func (e *Endpoint) describeSelf(tx *sim.Tx, i sim.Instance, values map[string]string) {
	s := e.show(tx)
	sub, _ := tx.Subnet(i.Subnet)
	set := func(name, value string) {
		if value != "" { // what an instance has not is not there
			values["meta-data/"+name] = value
		}
	}
	set("instance-id", i.ID)
	set("instance-type", i.Type)
	set("ami-id", "ami-0"+strings.Repeat("1", 16))
	set("placement/region", s.o.Region)
	set("placement/availability-zone", sub.Zone)
	set("placement/availability-zone-id", s.zoneID(sub.Zone))
	set("services/domain", "amazonaws.com")
	set("services/partition", "aws")
	for _, n := range tx.Interfaces() {
		// The service shows an interface from when the instance has its link on.
		if !n.At(i.ID) || n.Attachment.Status != sim.Attached {
			continue
		}
		if own(n) {
			set("mac", n.MAC)
			set("local-ipv4", text(n.Primary, n.Primary.IsValid()))
			set("local-hostname", s.dns(n.Primary))
			set("hostname", s.dns(n.Primary))
			set("security-groups", strings.Join(s.groupNames(n.Groups), "\n"))
			if len(n.V6) > 0 {
				set("ipv6", n.V6[0].String())
			}
			values["dynamic/instance-identity/document"] = s.identity(i, n, sub.Zone)
		}
		s.describeLink(n, set)
	}
}

func (s shower) groupNames(ids []string) []string {
	var names []string
	for _, id := range ids {
		names = append(names, s.groups[id])
	}
	return names
}

// describeLink fills in what there is of an attached ENI.
func (s shower) describeLink(n sim.Interface, set func(name, value string)) {
	sub, _ := s.tx.Subnet(n.Subnet)
	var v4, v6, prefixes4, prefixes6 []string
	for _, a := range n.Addresses() {
		if a.Is4() {
			v4 = append(v4, a.String())
		} else {
			v6 = append(v6, a.String())
		}
	}
	for _, p := range n.Prefixes {
		if p.Addr().Is4() {
			prefixes4 = append(prefixes4, p.String())
		} else {
			prefixes6 = append(prefixes6, p.String())
		}
	}
	vpc := s.tx.VPC()
	first := ""
	if len(vpc.V4) > 0 {
		first = vpc.V4[0].String()
	}
	for name, value := range map[string]string{
		"device-number":           strconv.Itoa(n.Attachment.Index),
		"network-card":            strconv.Itoa(n.Attachment.Card),
		"interface-id":            n.ID,
		"mac":                     n.MAC,
		"owner-id":                s.o.Owner,
		"local-hostname":          s.dns(n.Primary),
		"local-ipv4s":             strings.Join(v4, "\n"),
		"ipv6s":                   strings.Join(v6, "\n"),
		"ipv4-prefix":             strings.Join(prefixes4, "\n"),
		"ipv6-prefix":             strings.Join(prefixes6, "\n"),
		"security-group-ids":      strings.Join(n.Groups, "\n"),
		"security-groups":         strings.Join(s.groupNames(n.Groups), "\n"),
		"subnet-id":               n.Subnet,
		"subnet-ipv4-cidr-block":  text(sub.V4, sub.V4.IsValid()),
		"subnet-ipv6-cidr-blocks": text(sub.V6, sub.V6.IsValid()),
		"vpc-id":                  vpc.ID,
		"vpc-ipv4-cidr-block":     first,
		"vpc-ipv4-cidr-blocks":    strings.Join(texts(vpc.V4), "\n"),
		"vpc-ipv6-cidr-blocks":    strings.Join(texts(vpc.V6), "\n"),
	} {
		set("network/interfaces/macs/"+n.MAC+"/"+name, value)
	}
}
