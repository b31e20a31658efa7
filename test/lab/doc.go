// Package lab is the rig on which real processes run against a simulated VPC: the end to
// end tests, the nodes with a real containerd, the clusters, the benchmarks and the
// demonstration of enipoolctl. A lab is made of
//
//   - a VPC: links and network namespaces that the kernel has, and the account whose calls
//     change them (pkg/cloud/sim); agents call it at a socket. Type VPC.
//   - nodes: namespaces in which the VPC ends, each with its own ENI. VPC.AddNode. What a
//     node has beyond its network is its user's: a folder, or all that a kubelet needs
//     (package kube).
//   - processes on a node, the agent above all: Start, and Get for the pages that they serve.
//   - pods: namespaces (isolate.Namespace) that the plugin is called for, by itself, by libcni
//     or by containerd.
//   - an API server, where one is wanted: package kube.
//
// The clock is that of the machine. Where time is virtual there are no processes and no
// links, and the agent's own code runs in the test: pkg/simulate and test/explore.
//
// Functions return errors, as the demonstration and the benchmarks are no tests; NewVPC and
// Dir are for tests and end with them.
package lab
