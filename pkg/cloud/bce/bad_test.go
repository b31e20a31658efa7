package bce

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// swap makes a fault that puts one text for another in an answer.
func swap(from, to string) sim.Fault {
	return sim.Fault{Rewrite: func(body []byte) []byte {
		return bytes.ReplaceAll(body, []byte(from), []byte(to))
	}}
}

// pair is a site with an ENI of the first instance, and its clients.
func pair(t *testing.T) (*site, *engine.Node, *faulty, cloud.Interface) {
	t.Helper()
	withKeys(t)
	s := newSite(t, setup{})
	c, w := s.open(t, "i-n1", engine.Options{Subnets: []string{"sbn-a", "sbn-b"}, Times: driver.Times{Settle: settled / 2}})
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "pair", Subnet: "sbn-a", V4: 2})
	must(t, err)
	time.Sleep(settled)
	return s, c, w, i
}

// settled is how long after a call of pair's node describes count for more than what it did.
const settled = 20 * time.Millisecond

func TestAnAnswerThatIsCutOffIsNoAnswer(t *testing.T) {
	s, c, _, i := pair(t)
	for _, how := range []sim.Break{sim.Lost, sim.Cut, sim.Short} {
		for method, action := range map[string]string{"Interfaces": "ListEni", "Subnets": "ListSubnets", "Limits": "GetEniQuota"} {
			s.Endpoint.FailNext(action, sim.Fault{Answer: how})
			var err error
			switch method {
			case "Interfaces":
				_, err = c.Interfaces(t.Context())
			case "Subnets":
				_, err = c.Subnets(t.Context())
			case "Limits":
				_, err = c.Limits(t.Context())
			}
			// net/http repeats a read whose connection broke before any answer
			if !errors.Is(err, cloud.ErrUnavailable) && (how != sim.Lost || err != nil) {
				t.Errorf("%s with answer %v: %v", method, how, err)
			}
		}
		s.Endpoint.FailNext("BatchAddPrivateIp", sim.Fault{Answer: how})
		got, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1)
		if has := since(t, c, i); !errors.Is(err, cloud.ErrUnknown) || len(has) != 1 || !isIn(has, got) {
			t.Errorf("AssignAddresses with answer %v: %v, %v; the ENI has %v", how, got, err, has)
		}
		must(t, c.UnassignAddresses(t.Context(), i.ID, since(t, c, i)))
		time.Sleep(settled)
	}
}

func TestAnENIOfWhichTheCloudTellsWhatCantBeIsLeftOutAndReported(t *testing.T) {
	s, c, w, i := pair(t)
	second := i.Addresses[1].String()
	for name, tt := range map[string]struct{ from, to, why string }{
		"a primary address from outside":  {i.V4.Primary.Addr().String(), "192.0.2.7", "192.0.2.7 is not one of subnet"},
		"an address twice":                {second, i.Addresses[0].String(), "twice"},
		"an unreadable address":           {second, "ten", `"ten"`},
		"an IPv6 address for an IPv4 one": {second, "2001:db8::1", "2001:db8::1"},
		"two primary addresses":           {`"primary":false`, `"primary":true`, "primary addresses"},
		"no primary address":              {`"primary":true`, `"primary":false`, "no primary"},
		"no MAC":                          {i.MAC, "", "MAC"},
		"another VPC":                     {s.vpc(), "vpc-other", "vpc-other"},
		"another instance":                {`"i-n1"`, `"i-n2"`, "i-n2"},
		"no instance":                     {`"instanceId":"i-n1",`, ``, "at instance"},
		"an unknown state":                {`"inuse"`, `"confused"`, "confused"},
		"another's primary address":       {i.V4.Primary.Addr().String(), own(t, c).V4.Primary.Addr().String(), "too"},
		"another's MAC":                   {i.MAC, own(t, c).MAC, "too"},
	} {
		t.Run(name, func(t *testing.T) {
			w.alter(eniPath, tt.from, tt.to) // in each list
			list, err := c.Interfaces(t.Context())
			must(t, err)
			if len(list) != 1 || list[0].Index != 0 {
				t.Errorf("shown are %+v", list)
			}
			q := c.Quarantined()
			if len(q) != 1 || q[0].ID != i.ID || !strings.Contains(q[0].Why, tt.why) {
				t.Errorf("quarantined are %+v, want %s because of %s", q, i.ID, tt.why)
			}
		})
	}
	w.alter(eniPath)
	list, err := c.Interfaces(t.Context())
	if err != nil || len(list) != 2 || len(c.Quarantined()) != 0 {
		t.Errorf("when the cloud is right again: %v, %v, quarantined %v", list, err, c.Quarantined())
	}
}

// An ENI may have addresses of other subnets, which somebody put there (the API's
// crossSubnet calls): they are not for pods, the ENI's others are.
func TestAnAddressThatIsNotOfTheENIsSubnetIsLeftOutAlone(t *testing.T) {
	s, c, w, i := pair(t)
	mine := own(t, c)
	got, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 2)
	must(t, err)
	time.Sleep(settled)
	all := slices.Concat(i.Addresses, got)
	for _, foreign := range []string{"192.0.2.7", "10.0.4.9", "10.0.0.1", "10.0.0.0"} {
		w.alter(eniPath, `"`+all[1].String()+`"`, `"`+foreign+`"`)
		list, err := c.Interfaces(t.Context())
		must(t, err)
		if len(list) != 2 || !slices.Equal(list[1].Addresses, slices.Delete(slices.Clone(all), 1, 2)) {
			t.Errorf("with %s: shown are %+v", foreign, list)
		}
		q := c.Quarantined()
		if len(q) != 1 || q[0].ID != i.ID || !strings.Contains(q[0].Why, foreign) || !strings.Contains(q[0].Why, "alone") {
			t.Errorf("with %s: quarantined are %+v", foreign, q)
		}
	}
	w.alter(eniPath)
	// the instance's own ENI too: a describe without it is none
	s.Endpoint.FailNext("GetInstanceDetail", swap(`"ips":[`, `"ips":[{"privateIp":"10.0.4.9","primary":"false"},`))
	list, err := c.Interfaces(t.Context())
	if q := c.Quarantined(); err != nil || len(list) != 2 || list[0].ID != mine.ID || len(list[0].Addresses) > 0 || len(q) != 1 || q[0].ID != mine.ID {
		t.Errorf("on the own ENI: %+v, %v, quarantined %+v", list, err, q)
	}
}

func own(t *testing.T, c *engine.Node) cloud.Interface {
	t.Helper()
	list, err := c.Interfaces(t.Context())
	must(t, err)
	return list[0]
}

func TestAWrongAnswerAboutTheInstanceItselfIsAnError(t *testing.T) {
	s, c, _, _ := pair(t)
	mine := own(t, c)
	for name, fault := range map[string]sim.Fault{
		"another instance":        swap(`"id":"i-n1"`, `"id":"i-n2"`),
		"no ENI":                  swap(mine.ID, ""),
		"an address from outside": swap(mine.V4.Primary.Addr().String(), "192.0.2.1"),
		"no MAC":                  swap(mine.MAC, "02:00"),
		"no JSON":                 {Rewrite: func([]byte) []byte { return []byte("<html>") }},
	} {
		s.Endpoint.FailNext("GetInstanceDetail", fault)
		list, err := c.Interfaces(t.Context())
		if !errors.Is(err, cloud.ErrUnavailable) || list != nil || !strings.Contains(err.Error(), "bad answer") {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

func TestAnAnswerToAnAssignmentThatCantBeIsOfUnknownOutcome(t *testing.T) {
	s, c, _, i := pair(t)
	const marks = `{"privateIpAddresses":[`
	for name, body := range map[string]string{
		"outside of the subnet": marks + `"192.0.2.7"]}`,
		"the router":            marks + `"10.0.0.1"]}`,
		"one twice":             marks + `"10.0.0.77","10.0.0.77"]}`,
		"more than asked for":   marks + `"10.0.0.77","10.0.0.78","10.0.0.79"]}`,
		"the other family":      marks + `"2001:db8::1"]}`,
		"no address":            marks + `"x"]}`,
	} {
		s.Endpoint.FailNext("BatchAddPrivateIp", sim.Fault{Rewrite: func([]byte) []byte { return []byte(body) }})
		got, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 2)
		if !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		has := since(t, c, i)
		if len(has) != 2 || !isIn(has, got) {
			t.Errorf("%s: %v came, the ENI has %v", name, got, has)
		}
		must(t, c.UnassignAddresses(t.Context(), i.ID, has))
		time.Sleep(settled)
	}
}

// isIn tells whether all of the addresses are among others.
func isIn(all, some []netip.Addr) bool {
	for _, a := range some {
		if !slices.Contains(all, a) {
			return false
		}
	}
	return true
}

// since returns the addresses that the ENI has got after it was made.
func since(t *testing.T, c *engine.Node, i cloud.Interface) (more []netip.Addr) {
	t.Helper()
	list, err := c.Interfaces(t.Context())
	must(t, err)
	for _, a := range list[1].Addresses {
		if a != i.Addresses[0] && a != i.Addresses[1] {
			more = append(more, a)
		}
	}
	return more
}

func TestAnENIWithoutAnIDIsNotMade(t *testing.T) {
	s, c, _, _ := pair(t)
	for _, body := range []string{`{}`, `{"eniId":"a/b"}`, `[]`} {
		s.Endpoint.FailNext("CreateEni", sim.Fault{Rewrite: func([]byte) []byte { return []byte(body) }})
		_, err := c.CreateInterface(t.Context(), cloud.Create{Token: "other" + body, Subnet: "sbn-a", V4: 1})
		if !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("answer %s: %v", body, err)
		}
	}
}

func TestAListWithoutEndIsAnError(t *testing.T) {
	s, c, _, _ := pair(t)
	s.Endpoint.FailNext("ListEni", swap(`"isTruncated":false`, `"isTruncated":true`))
	if _, err := c.Interfaces(t.Context()); !errors.Is(err, cloud.ErrUnavailable) {
		t.Errorf("a page that has no next one: %v", err)
	}
}

func TestOthersENIsOnTheInstanceAreShownAndAreNotOurs(t *testing.T) {
	s, c, _, i := pair(t)
	var id string
	must(t, s.Update(func(tx *sim.Tx) error {
		n, err := tx.Create(sim.Create{Subnet: "sbn-b", Name: "theirs", Description: "enipool-like", Groups: []string{"g-1"}})
		if err != nil {
			return err
		}
		id = n.ID
		_, err = tx.Attach(sim.Attach{Interface: n.ID, Instance: "i-n1", Index: -1})
		return err
	}))
	list, err := c.Interfaces(t.Context())
	must(t, err)
	for _, shown := range list[1:] {
		ours, index := shown.ID == i.ID, eni.MaxIndex
		if ours {
			index = i.Index
		}
		if shown.Ours != ours || (shown.Token != "") != ours || shown.Index != index {
			t.Errorf("shown is %+v", shown)
		}
	}
	if len(list) != 3 {
		t.Errorf("Interfaces = %+v", list)
	}
	if err := c.DeleteInterface(t.Context(), id); !errors.Is(err, cloud.ErrForbidden) {
		t.Errorf("others' ENI is deleted: %v", err)
	}
}

func TestOthersENIsThatAreNotHereAreNotShown(t *testing.T) {
	s, c, _, i := pair(t)
	s.SetTimes(0, time.Hour, time.Hour)
	must(t, s.Update(func(tx *sim.Tx) error {
		n, err := tx.Create(sim.Create{Subnet: "sbn-b", Name: "theirs", Groups: []string{"g-1"}})
		if err != nil {
			return err
		}
		if _, err = tx.Attach(sim.Attach{Interface: n.ID, Instance: "i-n1", Index: -1}); err != nil {
			return err
		}
		// the list by name has it, because one name begins with the other
		_, err = tx.Create(sim.Create{Subnet: "sbn-b", Name: nameOf("i-n10"), Groups: []string{"g-1"},
			Description: "enipool 1 i-n10 1 1700000000000 t - -"})
		return err
	}))
	list, err := c.Interfaces(t.Context())
	if err != nil || len(list) != 2 || list[1].ID != i.ID || len(c.Quarantined()) > 0 {
		t.Errorf("Interfaces = %+v, %v; quarantined %v", list, err, c.Quarantined())
	}
}

// short is a context that ends soon.
func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestACallEndsWithItsContext(t *testing.T) {
	s, c, _, i := pair(t)
	for action, call := range map[string]func() error{
		"ListEni":           func() error { _, err := c.Interfaces(short(t)); return err },
		"BatchAddPrivateIp": func() error { _, err := c.AssignAddresses(short(t), i.ID, eni.IPv4, 1); return err },
		"DetachEniInstance": func() error { return c.DeleteInterface(short(t), i.ID) },
	} {
		s.Endpoint.FailNext(action, sim.Fault{Delay: time.Hour})
		err := call()
		if cloud.Kind(err) != cloud.ErrUnavailable && cloud.Kind(err) != cloud.ErrUnknown || !strings.Contains(err.Error(), "deadline") {
			t.Errorf("%s took longer than the context: %v", action, err)
		}
	}
}
