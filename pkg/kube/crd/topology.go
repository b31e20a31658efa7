package crd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PodSubnetTopology says which pods get addresses of which subnets or ranges, and for how long.
type PodSubnetTopology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TopologySpec   `json:"spec"`
	Status TopologyStatus `json:"status,omitempty"`
}

// PodSubnetTopologyList is what a list of them returns.
type PodSubnetTopologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodSubnetTopology `json:"items"`
}

// TopologySpec is what people say.
type TopologySpec struct {
	Priority          int32    `json:"priority,omitempty"` // the highest goes first
	NamespaceSelector Selector `json:"namespaceSelector,omitzero"`
	PodSelector       Selector `json:"podSelector,omitzero"`
	Subnets           []Source `json:"subnets"` // in order of preference
	Strategy          Strategy `json:"strategy"`
	Warm              int32    `json:"warm,omitempty"` // idle addresses per node
}

// Selector selects by labels. metav1.LabelSelector is the same, with pointers; one that is absent matches everything here.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty"`
}

// Requirement is what a selector asks of one label.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"` // In, NotIn, Exists or DoesNotExist
	Values   []string `json:"values,omitempty"`
}

// Source is where addresses come from.
type Source struct {
	ID     string  `json:"id"` // of a subnet
	Ranges []Range `json:"ranges,omitempty"`
}

// Range is the addresses from one to another, both included.
type Range struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Strategy is how long an address stays with the name of a pod.
type Strategy struct {
	Type string `json:"type"`          // Elastic, Sticky or Fixed
	TTL  string `json:"ttl,omitempty"` // of Sticky, as Go writes durations
}

// TopologyStatus is what the operator knows. Counts that nobody has worked out are nil.
type TopologyStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Pods               *int32             `json:"pods,omitempty"`
	Claims             *int32             `json:"claims,omitempty"`
	Room               *int32             `json:"room,omitempty"`  // addresses for what is new
	Zones              []string           `json:"zones,omitempty"` // of its subnets that are ready
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}
