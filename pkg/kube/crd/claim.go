package crd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AddressClaim is an address that is kept for the pods of one name. It is named by the address, so that the API server
// refuses a second one.
type AddressClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClaimSpec   `json:"spec"`
	Status ClaimStatus `json:"status,omitempty"`
}

// AddressClaimList is what a list of them returns.
type AddressClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddressClaim `json:"items"`
}

// ClaimSpec is what is kept for whom. Nothing of it changes.
type ClaimSpec struct {
	Topology  string    `json:"topology"`
	Subnet    string    `json:"subnet"`
	Address   string    `json:"address"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Keep      string    `json:"keep"` // TTL or Workload
	TTL       string    `json:"ttl,omitempty"`
	Workload  *Workload `json:"workload,omitempty"`
}

// Workload is what makes the pods, in their namespace.
type Workload struct {
	Kind string `json:"kind"` // StatefulSet
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// ClaimStatus is how far a claim is.
type ClaimStatus struct {
	Phase     string `json:"phase,omitempty"` // Free, Moving, Bound, Releasing or Conflict
	PodUID    string `json:"podUID,omitempty"`
	Node      string `json:"node,omitempty"`      // that had it last
	Interface string `json:"interface,omitempty"` // the ENI there
	To        string `json:"to,omitempty"`        // the node that it moves to
	// ToInterface is the ENI that one call moves the address to, from wherever it is. It stays until no such call can take effect any more.
	ToInterface string       `json:"toInterface,omitempty"`
	FreeSince   *metav1.Time `json:"freeSince,omitempty"`
	Moves       int32        `json:"moves,omitempty"`
	Message     string       `json:"message,omitempty"`
}
