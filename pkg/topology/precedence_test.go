package topology

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Topologies are made on dayOne; what goes by the time asks at noon.
var (
	dayOne = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	noon   = dayOne.Add(12 * time.Hour)
)

func labels(pairs ...string) map[string]string {
	made := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		made[pairs[i]] = pairs[i+1]
	}
	return made
}

func selects(pairs ...string) Selector { return Selector{Labels: labels(pairs...)} }

// aPod is one of a namespace whose labels have its name.
func aPod(namespace, name, app string) Pod {
	return Pod{Namespace: namespace, Name: name, UID: "uid-" + name, NamespaceLabels: labels("name", namespace), Labels: labels("app", app)}
}

func TestTheTopologyOfAPod(t *testing.T) {
	byName, everything := selects("name", "db"), Selector{}
	t1 := Topology{Name: "t1", Created: dayOne, Namespaces: byName}
	t2 := Topology{Name: "t2", Created: dayOne, Namespaces: byName, Pods: selects("app", "x")}
	t3 := Topology{Name: "t3", Created: dayOne, Priority: 5}
	t4 := Topology{Name: "t4", Created: dayOne.Add(time.Second), Pods: selects("app", "x")}
	t5 := Topology{Name: "t5", Created: dayOne, Pods: selects("app", "x")}
	a, b := t5, t5
	a.Name, b.Name = "a", "b"
	podsAlone, namespacesAlone := t5, t1
	podsAlone.Created = dayOne.Add(time.Hour)
	system := Topology{Name: "system", Namespaces: selects("name", "kube-system")}

	for _, tt := range []struct {
		name string
		pod  Pod
		of   []Topology
		want string
	}{
		{"the highest priority", aPod("db", "p", "x"), []Topology{t1, t2, t3}, "t3"},
		{"then what selects pods too", aPod("db", "p", "x"), []Topology{t1, t2}, "t2"},
		{"what selects others is none", aPod("db", "p", "y"), []Topology{t1, t2}, "t1"},
		{"another namespace", aPod("web", "p", "x"), []Topology{t1, t2}, ""},
		{"the older one", aPod("web", "p", "x"), []Topology{t4, t5}, "t5"},
		{"of two of one second by name", aPod("web", "p", "x"), []Topology{b, a}, "a"},
		{"pods count before namespaces, and both before age", aPod("db", "p", "x"), []Topology{namespacesAlone, podsAlone}, "t5"},
		{"namespaces count before nothing", aPod("db", "p", "x"), []Topology{{Name: "old", Namespaces: everything}, t1}, "t1"},
		{"a rule for all is none for the system", aPod("kube-system", "dns", "x"), []Topology{t3, t5}, ""},
		{"one that names the system is", aPod("kube-system", "dns", "x"), []Topology{t3, system}, "system"},
		{"no topology", aPod("db", "p", "x"), nil, ""},
	} {
		if got, found := Find(tt.pod, tt.of); got.Name != tt.want || found != (tt.want != "") {
			t.Errorf("%s: %q, %t; want %q", tt.name, got.Name, found, tt.want)
		}
	}
}

func TestASelectorMatchesAsThoseOfKubernetesDo(t *testing.T) {
	for _, tt := range []struct {
		r    Requirement
		has  string // the value of the label, "-" for none
		want bool
	}{
		{Requirement{"k", In, []string{"a", "b"}}, "b", true},
		{Requirement{"k", In, []string{"a", "b"}}, "c", false},
		{Requirement{"k", In, []string{""}}, "-", false},
		{Requirement{"k", NotIn, []string{"a"}}, "b", true},
		{Requirement{"k", NotIn, []string{"a"}}, "a", false},
		{Requirement{"k", NotIn, []string{"a"}}, "-", true},
		{Requirement{"k", Exists, nil}, "", true},
		{Requirement{"k", Exists, nil}, "-", false},
		{Requirement{"k", DoesNotExist, nil}, "-", true},
		{Requirement{"k", DoesNotExist, nil}, "", false},
		{Requirement{"k", "Gt", []string{"1"}}, "2", false},
	} {
		of := map[string]string{}
		if tt.has != "-" {
			of["k"] = tt.has
		}
		if got := (Selector{Requirements: []Requirement{tt.r}}).Matches(of); got != tt.want {
			t.Errorf("%v of %q: %t", tt.r, tt.has, got)
		}
	}
	both := Selector{Labels: labels("a", "1"), Requirements: []Requirement{{"b", Exists, nil}}}
	if !both.Matches(labels("a", "1", "b", "")) || both.Matches(labels("a", "1")) || both.Matches(labels("b", "1")) {
		t.Error("a selector is not all of its parts")
	}
	if selects("a", "").Matches(nil) {
		t.Error("a label that is not there is taken for an empty one")
	}
}

// someTopologies draws topologies of names that differ, and of few values else.
func someTopologies(t *rapid.T) (list []Topology) {
	selectors := rapid.SampledFrom([]Selector{{}, selects("app", "x"), selects("name", "db"), {Requirements: []Requirement{{"app", NotIn, []string{"y"}}}}})
	for i := range rapid.IntRange(0, 6).Draw(t, "topologies") {
		list = append(list, Topology{Name: fmt.Sprint("t", i), Priority: rapid.IntRange(0, 1).Draw(t, "priority"),
			Created:    dayOne.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "created")) * time.Second),
			Namespaces: selectors.Draw(t, "namespaces"), Pods: selectors.Draw(t, "pods")})
	}
	return list
}

// Whichever order the list is in, the same topology wins, and it wins against each that matches.
func TestTheOrderOfTopologiesIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := someTopologies(t)
		for _, a := range list {
			for _, b := range list {
				if got, back := Compare(a, b), Compare(b, a); got != -back || (got == 0) != (a.Name == b.Name) {
					t.Fatalf("%+v, %+v: %d, and %d the other way round", a, b, got, back)
				}
				for _, c := range list {
					if Compare(a, b) < 0 && Compare(b, c) < 0 && Compare(a, c) >= 0 {
						t.Fatalf("%+v before %+v before %+v, and not before it", a, b, c)
					}
				}
			}
		}
		p := aPod(rapid.SampledFrom([]string{"db", "web", "kube-system"}).Draw(t, "namespace"), "p", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app"))
		best, found := Find(p, list)
		other, again := Find(p, rapid.Permutation(slices.Clone(list)).Draw(t, "permuted"))
		if found != again || best.Name != other.Name {
			t.Fatalf("%q, and of the same topologies in another order %q", best.Name, other.Name)
		}
		for _, rival := range list {
			if rival.Matches(p) && (!found || Compare(rival, best) < 0) {
				t.Fatalf("%q wins over %q, which goes before it", best.Name, rival.Name)
			}
		}
	})
}
