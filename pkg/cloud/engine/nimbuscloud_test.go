package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// nimbusCloud is the made-up cloud's API, as the instance on which its caller runs sees it.
type nimbusCloud struct {
	mu      sync.Mutex
	nics    []*nimbusNIC // one an instance
	ended   map[string]bool
	subnets []nimbusSubnet
	others  int // addresses that others have
	changes int // requests so far that change something
	faults  map[string][]nimbusFault
}

// nimbusFault is what goes wrong with a request.
type nimbusFault struct {
	status int
	code   string
	lost   bool          // the answer is
	half   bool          // of the addresses
	later  time.Duration // the effect comes so long after the answer was lost
	hang   bool
}

func newNimbusCloud() *nimbusCloud {
	c := &nimbusCloud{ended: map[string]bool{}, faults: map[string][]nimbusFault{}}
	for at, id := range []string{"sub-a", "sub-b"} {
		c.subnets = append(c.subnets, nimbusSubnet{ID: id, Network: "net-1", Zone: "z-1", Labels: map[string]string{"role": id, "team": "net"},
			Range: netip.MustParsePrefix(fmt.Sprintf("10.0.%d.0/24", at)), Gateway: netip.MustParseAddr(fmt.Sprintf("10.0.%d.1", at)),
			Pods: netip.MustParsePrefix(fmt.Sprintf("10.64.%d.0/25", at))})
	}
	for n, id := range []string{"i-1", "i-2"} {
		c.nics = append(c.nics, &nimbusNIC{ID: "nic-of-" + id, MAC: fmt.Sprintf("02:00:00:00:00:%02d", n), Instance: id, Network: "net-1", Subnet: "sub-a",
			Zone: "z-1", Created: time.Now().UTC(), Address: netip.MustParseAddr(fmt.Sprintf("10.0.0.1%d", n)),
			Groups: []string{"nodes"}, Fingerprint: "0"})
	}
	return c
}

// as is the API for another instance.
func (c *nimbusCloud) as(instance string) http.RoundTripper { return nimbusView{c, instance} }

type nimbusView struct {
	*nimbusCloud
	instance string
}

// fail befalls the next request: "PATCH /nics", "GET /subnets".
func (c *nimbusCloud) fail(request string, f nimbusFault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[request] = append(c.faults[request], f)
}

// RoundTrip implements http.RoundTripper.
func (v nimbusView) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f := v.meet(r)
	switch {
	case f.hang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case f.later > 0:
		time.AfterFunc(f.later, func() { v.carryOut(r, body, f) })
		return nil, syscall.ECONNRESET
	}
	status, answer := v.carryOut(r, body, f)
	if f.lost {
		return nil, syscall.ECONNRESET
	}
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: status, Status: strconv.Itoa(status), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

func (c *nimbusCloud) meet(r *http.Request) (f nimbusFault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := r.Method + " /" + strings.Split(r.URL.Path, "/")[1]
	if queue := c.faults[key]; len(queue) > 0 {
		f, c.faults[key] = queue[0], queue[1:]
	}
	if r.Method != http.MethodGet {
		c.changes++
	}
	return f
}

func (v nimbusView) carryOut(r *http.Request, body []byte, f nimbusFault) (int, any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.code != "" {
		return refuse(f.status, f.code)
	}
	_, kind, _ := strings.Cut(r.URL.Path, "/")
	kind, id, _ := strings.Cut(kind, "/")
	switch {
	case kind == "metadata":
		return 200, nimbusInstance{ID: v.instance, Type: "n1", Region: "r-1", Zone: "z-1", Network: "net-1"}
	case kind == "types":
		return 200, nimbusType{Secondary: mostNimbus}
	case kind == "instances":
		return 200, nimbusPage[nimbusInstance]{Items: v.instances(r.URL.Query()["id"])}
	case kind == "subnets":
		return 200, v.subnetPage(r.URL.Query())
	case kind == "nics" && r.Method == http.MethodPatch:
		return v.change(id, body, f.half)
	case kind == "nics" && id != "":
		if n := v.nic(id); n != nil {
			return 200, *n
		}
		return refuse(404, "NIC_NOT_FOUND")
	case kind == "nics":
		return 200, nimbusPage[nimbusNIC]{Items: v.select1(r.URL.Query())}
	}
	return refuse(404, "INVALID")
}

// mostNimbus is how many further addresses a NIC may have.
const mostNimbus = 16

func refuse(status int, code string) (int, any) {
	var e nimbusError
	e.Error.Code, e.Error.Message = code, "it can't be done"
	return status, e
}

func (c *nimbusCloud) instances(ids []string) (list []nimbusInstance) {
	for _, n := range c.nics {
		if slices.Contains(ids, n.Instance) {
			state := "RUNNING"
			if c.ended[n.Instance] {
				state = "TERMINATED"
			}
			list = append(list, nimbusInstance{ID: n.Instance, Type: "n1", State: state})
		}
	}
	return list
}

// subnetPage has one subnet.
func (c *nimbusCloud) subnetPage(q url.Values) (p nimbusPage[nimbusSubnet]) {
	at, _ := strconv.Atoi(q.Get("page"))
	s := c.subnets[at]
	s.PodsFree = c.free(s)
	p.Items = []nimbusSubnet{s}
	if at+1 < len(c.subnets) {
		p.Next = strconv.Itoa(at + 1)
	}
	return p
}

func (c *nimbusCloud) free(s nimbusSubnet) int {
	left := 1 << (32 - s.Pods.Bits())
	if s.ID == "sub-a" {
		left -= c.others
	}
	for _, n := range c.nics {
		if n.Subnet == s.ID {
			left -= len(n.Secondary)
		}
	}
	return left
}

// leave lets others of the network take all but so many addresses.
func (c *nimbusCloud) leave(_ string, free int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others += c.free(c.subnets[0]) - free
}

func (c *nimbusCloud) nic(id string) *nimbusNIC {
	at := slices.IndexFunc(c.nics, func(n *nimbusNIC) bool { return n.ID == id && !c.ended[n.Instance] })
	if at < 0 {
		return nil
	}
	return c.nics[at]
}

func (c *nimbusCloud) select1(q url.Values) (list []nimbusNIC) {
	for _, n := range c.nics {
		if !c.ended[n.Instance] && (slices.Contains(q["id"], n.ID) || slices.Contains(q["instance"], n.Instance) || q.Get("network") == n.Network) {
			list = append(list, *n)
		}
	}
	return list
}

// change replaces a NIC's lists, all of what is asked or nothing.
func (c *nimbusCloud) change(id string, body []byte, half bool) (int, any) {
	var p nimbusPatch
	n := c.nic(id)
	switch err := json.Unmarshal(body, &p); {
	case err != nil:
		return refuse(400, "INVALID")
	case n == nil:
		return refuse(404, "NIC_NOT_FOUND")
	case p.Fingerprint != n.Fingerprint:
		return refuse(412, "STALE_FINGERPRINT")
	}
	made := *n
	if p.Groups != nil {
		made.Groups = p.Groups
	}
	if p.Secondary != nil {
		addrs, status, code := c.give(*n, p.Secondary, half)
		if code != "" {
			return refuse(status, code)
		}
		made.Secondary = addrs
	}
	changed, _ := strconv.Atoi(n.Fingerprint)
	made.Fingerprint = strconv.Itoa(changed + 1)
	*n = made
	return 200, made
}

// give returns the addresses of a NIC's new list.
func (c *nimbusCloud) give(n nimbusNIC, want []string, half bool) (addrs []netip.Addr, status int, code string) {
	s := c.subnets[slices.IndexFunc(c.subnets, func(s nimbusSubnet) bool { return s.ID == n.Subnet })]
	fresh := len(slices.DeleteFunc(slices.Clone(want), func(w string) bool { return w != "any" }))
	if more := len(want) - len(n.Secondary); half && more > 0 {
		want = want[:len(want)-more/2]
	} else if half {
		want = append(want, texts(lacking(n.Secondary, parsed(want)))[:-more/2]...)
	}
	switch {
	case len(want) > mostNimbus:
		return nil, 400, "TOO_MANY_ADDRESSES"
	case fresh > c.free(s):
		return nil, 409, "RANGE_EXHAUSTED"
	}
	taken := map[netip.Addr]bool{}
	for _, other := range c.nics {
		for _, a := range other.Secondary {
			taken[a] = true
		}
	}
	next := s.Pods.Addr()
	for _, w := range want {
		a, err := netip.ParseAddr(w)
		for ; err != nil && taken[next]; next = next.Next() {
		}
		if err != nil {
			a = next
		} else if !slices.Contains(n.Secondary, a) {
			return nil, 400, "INVALID"
		}
		taken[a] = true
		addrs = append(addrs, a)
	}
	return addrs, 0, ""
}

func parsed(texts []string) (addrs []netip.Addr) {
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			addrs = append(addrs, a)
		}
	}
	return addrs
}
