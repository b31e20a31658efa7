package crd

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/order"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	definitions = "../../../conf/kubernetes/crds/crds.yaml"
	topologies  = "../../../conf/kubernetes/topologies/crds.yaml"
)

// shape is as much of an OpenAPI schema as names fields and their words.
type shape struct {
	Type, Format, Pattern string
	Properties            map[string]shape
	Items                 *shape
	AdditionalProperties  *shape
	Enum                  []string
}

// schemas returns the schemas of the kinds, by name.
func schemas(t *testing.T) map[string]shape {
	t.Helper()
	all := map[string]shape{}
	var docs []string
	for _, file := range []string{definitions, topologies} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, strings.Split(string(text), "\n---\n")...)
	}
	for _, doc := range docs {
		var d struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema shape }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(doc), &d); err != nil {
			t.Fatal(err)
		}
		for _, v := range d.Spec.Versions {
			if v.Name == GroupVersion.Version {
				all[d.Spec.Names.Kind] = v.Schema.OpenAPIV3Schema
			}
		}
	}
	return all
}

// fields lists a schema's fields as paths with types.
func (s shape) fields(path string, add func(string)) {
	switch {
	case s.Type == "object" && s.AdditionalProperties != nil:
		add(path + " map")
	case s.Type == "object":
		for name, f := range s.Properties {
			f.fields(path+"."+name, add)
		}
	case s.Type == "array":
		s.Items.fields(path+"[]", add)
	default:
		add(path + " " + s.Type)
	}
}

// typeFields does that for a Go type.
func typeFields(t *testing.T, of reflect.Type, path string, add func(string)) {
	t.Helper()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[metav1.Time]() {
		add(path + " string")
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			switch name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); {
			case of.Field(i).Anonymous: // its fields stand among the others
				typeFields(t, of.Field(i).Type, path, add)
			case name != "":
				typeFields(t, of.Field(i).Type, path+"."+name, add)
			}
		}
	case reflect.Slice:
		typeFields(t, of.Elem(), path+"[]", add)
	case reflect.Map:
		add(path + " map")
	case reflect.String:
		add(path + " string")
	case reflect.Bool:
		add(path + " boolean")
	case reflect.Int32, reflect.Int64:
		add(path + " integer")
	default:
		t.Errorf("%s is a %s", path, of)
	}
}

// A reason that the schema lacks would keep the operator's whole status out of the API server.
func TestTheSchemaTakesTheReasonsThatOperatorsTell(t *testing.T) {
	reason := schemas(t)["NodeNetwork"].Properties["status"].Properties["causes"].Items.Properties["reason"]
	var want []string
	for _, r := range order.Reasons() {
		want = append(want, string(r))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(reason.Enum))); diff != "" {
		t.Errorf("the enum of status.causes.reason in %s (-want +got):\n%s", definitions, diff)
	}
}

// What the API server keeps and what programs read are the same fields: it drops a field that the
// schema lacks without a word.
func TestSchemasAndTypesHaveTheSameFields(t *testing.T) {
	all := schemas(t)
	for kind, parts := range map[string]map[string]reflect.Type{
		"NodeNetwork": {"spec": reflect.TypeFor[NodeNetworkSpec](), "status": reflect.TypeFor[NodeNetworkStatus]()},
		"Subnet":      {"spec": reflect.TypeFor[SubnetSpec](), "status": reflect.TypeFor[SubnetStatus]()},

		"PodSubnetTopology": {"spec": reflect.TypeFor[TopologySpec](), "status": reflect.TypeFor[TopologyStatus]()},
		"AddressClaim":      {"spec": reflect.TypeFor[ClaimSpec](), "status": reflect.TypeFor[ClaimStatus]()},
	} {
		for part, of := range parts {
			var schema, types []string
			all[kind].Properties[part].fields(part, func(f string) { schema = append(schema, f) })
			typeFields(t, of, part, func(f string) { types = append(types, f) })
			slices.Sort(schema)
			slices.Sort(types)
			if diff := cmp.Diff(schema, types); diff != "" || len(schema) < 5 {
				t.Errorf("%s (-schema +type):\n%s", kind, diff)
			}
		}
	}
}

// fill sets every field to something.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, n)
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", *n)).Convert(v.Type().Key()), value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(int64(*n), 0).UTC())))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	}
}

// scramble changes all that pointers, slices and maps lead to.
func scramble(v reflect.Value, shared bool) {
	switch v.Kind() {
	case reflect.Pointer:
		scramble(v.Elem(), true)
	case reflect.Slice:
		for i := range v.Len() {
			scramble(v.Index(i), true)
		}
	case reflect.Map:
		v.Clear()
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			if shared {
				v.SetZero()
			}
			return
		}
		for i := range v.NumField() {
			scramble(v.Field(i), shared)
		}
	default:
		if shared {
			v.SetZero()
		}
	}
}

func TestACopySharesNothing(t *testing.T) {
	n := 0
	node, subnet, topology, claim := &NodeNetwork{}, &Subnet{}, &PodSubnetTopology{}, &AddressClaim{}
	for _, v := range []any{&node.Spec, &node.Status, &subnet.Spec, &subnet.Status, &topology.Spec, &topology.Status, &claim.Spec, &claim.Status} {
		fill(reflect.ValueOf(v).Elem(), &n)
	}
	for _, o := range []metav1.Object{node, subnet, topology, claim} {
		o.SetLabels(map[string]string{"a": "b"})
	}
	for _, tt := range []struct {
		of     runtime.Object
		parts  func(runtime.Object) []any
		within func(runtime.Object) runtime.Object // a list of it
	}{
		{node, func(o runtime.Object) []any { c := o.(*NodeNetwork); return []any{&c.Spec, &c.Status, &c.Labels} },
			func(o runtime.Object) runtime.Object {
				return &NodeNetworkList{Items: []NodeNetwork{*o.(*NodeNetwork)}}
			}},
		{subnet, func(o runtime.Object) []any { c := o.(*Subnet); return []any{&c.Spec, &c.Status, &c.Labels} },
			func(o runtime.Object) runtime.Object { return &SubnetList{Items: []Subnet{*o.(*Subnet)}} }},
		{topology, func(o runtime.Object) []any { c := o.(*PodSubnetTopology); return []any{&c.Spec, &c.Status, &c.Labels} },
			func(o runtime.Object) runtime.Object {
				return &PodSubnetTopologyList{Items: []PodSubnetTopology{*o.(*PodSubnetTopology)}}
			}},
		{claim, func(o runtime.Object) []any { c := o.(*AddressClaim); return []any{&c.Spec, &c.Status, &c.Labels} },
			func(o runtime.Object) runtime.Object {
				return &AddressClaimList{Items: []AddressClaim{*o.(*AddressClaim)}}
			}},
	} {
		want, err := json.Marshal(tt.of)
		if err != nil {
			t.Fatal(err)
		}
		same, deep := tt.of.DeepCopyObject(), tt.within(tt.of).DeepCopyObject()
		if diff := cmp.Diff(tt.of, same); diff != "" {
			t.Errorf("the copy differs (-of +copy):\n%s", diff)
		}
		if diff := cmp.Diff(tt.within(tt.of), deep); diff != "" {
			t.Errorf("the list's copy differs (-of +copy):\n%s", diff)
		}
		for _, part := range tt.parts(same) {
			scramble(reflect.ValueOf(part).Elem(), false)
		}
		if is, _ := json.Marshal(tt.of); string(is) != string(want) {
			t.Errorf("changing the copy changed what it is of:\n%s", cmp.Diff(string(want), string(is)))
		}
	}
}

// Clients find the kinds.
func TestTheSchemeKnowsTheKinds(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"NodeNetwork", "NodeNetworkList", "Subnet", "SubnetList", "PodSubnetTopology", "PodSubnetTopologyList", "AddressClaim", "AddressClaimList"} {
		if o, err := s.New(GroupVersion.WithKind(kind)); err != nil || reflect.TypeOf(o).Elem().Name() != kind {
			t.Errorf("%s: %T, %v", kind, o, err)
		}
	}
}

// A list of all nodes fails as a whole where one object can't be read: API servers take for a date-time what Go does not, in
// letters of the wrong case or from a zone that there is none of, and the pattern keeps that out.
func TestTimesThatGoDoesNotReadAreRefused(t *testing.T) {
	var times int
	var walk func(path string, s shape)
	walk = func(path string, s shape) {
		for name, f := range s.Properties {
			walk(path+"."+name, f)
		}
		if s.Items != nil {
			walk(path+"[]", *s.Items)
		}
		if s.Format != "date-time" {
			return
		}
		times++
		taken := regexp.MustCompile(s.Pattern)
		for text, want := range map[string]bool{
			"2026-11-27T12:00:00Z": true, "2026-11-27T12:00:00.123456Z": true, "2026-11-27T12:00:00+05:30": true,
			"2026-11-27t12:00:00z": false, "2026-11-27T12:00:00+99:00": false, "2026-11-27 12:00:00Z": false,
		} {
			_, err := time.Parse(time.RFC3339, text)
			if got := taken.MatchString(text); got != want || got && err != nil {
				t.Errorf("%s %s: taken: %t, want %t; read: %v", path, text, got, want, err)
			}
		}
	}
	for kind, s := range schemas(t) {
		walk(kind, s)
	}
	if times == 0 {
		t.Error("there are no times")
	}
}
