package cce

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/plugins/enipoolctl/manifest"
)

// group is that of CCE's objects.
const group = "cce.baidubce.com"

// The kinds that are read.
const (
	ofNamespace = "PodSubnetTopologySpread"        // psts
	ofCluster   = "ClusterPodSubnetTopologySpread" // cpsts; CCE makes a psts of it in each namespace that it selects
	subnetKind  = "Subnet"
)

// object is one of them as it is read: what its kind says comes later.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Deleted   string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status json.RawMessage `json:"status"`
}

// title names an object to people.
func (o object) title() string {
	if o.Metadata.Namespace != "" {
		return o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
	}
	return o.Kind + " " + o.Metadata.Name
}

// spread is what a psts or cpsts says.
type spread struct {
	Name              string                  `json:"name"`
	Priority          int32                   `json:"priority"`
	NamespaceSelector *crd.Selector           `json:"namespaceSelector"` // of a cpsts
	Selector          *crd.Selector           `json:"selector"`
	Subnets           map[string][]allocation `json:"subnets"`
	Strategy          *strategy               `json:"strategy"`
	MaxSkew           *int32                  `json:"maxSkew"`
	WhenUnsatisfiable string                  `json:"whenUnsatisfiable"`
}

// allocation is what addresses of one family of a subnet are meant.
type allocation struct {
	Family json.RawMessage `json:"family"` // "4" or "6"; files have it as a number too
	Range  []struct {
		Start string `json:"start"`
		End   string `json:"end"`
	} `json:"range"`
}

func (a allocation) family() string { return strings.Trim(string(a.Family), `"`) }

type strategy struct {
	Type                 string `json:"type"`
	ReleaseStrategy      string `json:"releaseStrategy"`
	EnableReuseIPAddress bool   `json:"enableReuseIPAddress"`
	TTL                  string `json:"ttl"`
}

// given is what a status tells of addresses that pods have.
type given struct {
	Available   map[string]givenIn `json:"availableSubnets"`
	Unavailable map[string]givenIn `json:"unavailableSubnets"`
	Below       map[string]given   `json:"subStatus"` // of a cpsts, by namespace
}

type givenIn struct {
	Pods map[string]string `json:"ipAllocations"` // by address
}

// listPods returns the addresses that pods have, each with its pod.
func (g given) listPods() (list []string) {
	for _, subnets := range []map[string]givenIn{g.Available, g.Unavailable} {
		for _, in := range subnets {
			for address, pod := range in.Pods {
				list = append(list, address+" "+pod)
			}
		}
	}
	for _, below := range g.Below {
		list = append(list, below.listPods()...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// readSpread reads what a psts or cpsts says, and names what of it nobody knows.
func readSpread(o object) (s spread, unknown []string, err error) {
	if len(o.Spec) == 0 {
		return s, nil, errors.New("it has no spec")
	}
	// Of the two readers this one says which field is wrong, and the other which are unknown.
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(o.Spec, &s); errors.As(err, &wrong) {
		return s, nil, fmt.Errorf("spec.%s has to be of type %s, and is of type %s; write it as kubectl get psts -o yaml does", wrong.Field, kindOf(wrong.Type), wrong.Value)
	}
	strict, err := kjson.UnmarshalStrict(o.Spec, &s)
	if err != nil {
		return s, nil, fmt.Errorf("spec: %w", err)
	}
	for _, not := range strict {
		unknown = append(unknown, "spec: "+not.Error())
	}
	return s, unknown, nil
}

// kindOf is a type in the words of JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "object"
	case reflect.Slice:
		return "array"
	}
	return t.Kind().String()
}

// objectsOf reads of each object what all kinds have.
func objectsOf(list []manifest.Object) (all []object, err error) {
	for _, is := range list {
		var o object
		if err := json.Unmarshal(is.Text, &o); err != nil {
			return nil, err
		}
		o.APIVersion, o.Kind = is.APIVersion, is.Kind // those of an item stand on its list
		all = append(all, o)
	}
	return all, nil
}
