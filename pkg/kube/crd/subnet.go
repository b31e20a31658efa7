package crd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Subnet is one of the cloud's, by whose ID it is named.
type Subnet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SubnetSpec   `json:"spec"`
	Status SubnetStatus `json:"status,omitempty"`
}

// SubnetList is what a list of them returns.
type SubnetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Subnet `json:"items"`
}

// SubnetSpec is what people want of it.
type SubnetSpec struct {
	Use          string            `json:"use"`                    // Shared: ENIs of nodes. Exclusive: topologies alone. Disabled: nothing new
	Weight       int32             `json:"weight,omitempty"`       // the highest goes first
	NodeSelector map[string]string `json:"nodeSelector,omitempty"` // labels that a node must have
	KeepFree     int32             `json:"keepFree,omitempty"`     // addresses, for load balancers and others
	IsolateBelow int32             `json:"isolateBelow,omitempty"` // with less room it gets no new ENI
	Reserve      []string          `json:"reserve,omitempty"`      // prefixes to be reserved in the cloud
}

// SubnetStatus is what the operator knows of it. Counts are addresses.
type SubnetStatus struct {
	VPC         string             `json:"vpc,omitempty"`
	Zone        string             `json:"zone,omitempty"`
	V4          string             `json:"v4,omitempty"` // its range
	V6          string             `json:"v6,omitempty"`
	Free        int32              `json:"free"`                // as the cloud says
	Owed        int32              `json:"owed"`                // to ENIs that are not full yet
	Room        int32              `json:"room"`                // for what is new
	Interfaces  int32              `json:"interfaces"`          // of nodes
	Addresses   int32              `json:"addresses,omitempty"` // of those
	State       string             `json:"state,omitempty"`     // Ready, Low, Full, Missing, Unmanaged or Disabled
	FullSince   *metav1.Time       `json:"fullSince,omitempty"`
	RetryAt     *metav1.Time       `json:"retryAt,omitempty"`
	DescribedAt *metav1.Time       `json:"describedAt,omitempty"`
	Reserved    []CloudReservation `json:"reserved,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// CloudReservation is a range that the cloud gives out by name alone.
type CloudReservation struct {
	CIDR string `json:"cidr"`
	ID   string `json:"id"` // in the cloud
}
