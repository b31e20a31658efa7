// Package aws holds what an AWS account needs for enipool, and what is known of its
// instance types before it is asked: what a role may do, in the whole account or within
// a cluster, who may take it, and types.yaml, the built-in table of instance types.
// README.md beside it tells which is for whom.
package aws

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

// Policy is the least IAM policy of a node's role. Its ARNs leave the partition open, as
// those of AWS' own policies do:
// docs.aws.amazon.com/aws-managed-policy/latest/reference/KafkaServiceRolePolicy.html
//
//go:embed policy.json
var Policy string

// ClusterPolicy is Policy for one cluster, whose name stands in the place of CLUSTER.
//
//go:embed policy-cluster.json
var ClusterPolicy string

// OperatorPolicy is the least IAM policy of the role of an operator, which calls EC2 for all nodes of the
// cluster whose name stands in the place of CLUSTER.
//
//go:embed policy-operator.json
var OperatorPolicy string

// Trust is the trust policy of that role, for instance profiles.
//
//go:embed trust.json
var Trust string

// TrustChina is Trust in China, where EC2 has another name: with the usual one IAM
// answers "Invalid principal in policy" (github.com/kubernetes/kops/issues/27).
//
//go:embed trust-cn.json
var TrustChina string

// TrustServiceAccount is the trust policy of a role for the agents' service account,
// with PARTITION, ACCOUNT and ISSUER to be filled in:
// docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html
//
//go:embed trust-serviceaccount.json
var TrustServiceAccount string

// Types is the table of instance types, as a file that a person may copy and change.
//
//go:embed types.yaml
var Types string

// Type is what an instance type may carry, on its default network card.
type Type struct {
	Name     string
	ENIs     int  // attached at once, the primary one included
	IPs      int  // IPv4 addresses of an ENI, its primary among them; as many IPv6 ones
	Prefixes bool // in the place of each secondary address an ENI may have a prefix
}

// Table is the built-in table, read.
type Table struct {
	Date  string
	Types []Type // sorted by name
}

// ReadTable reads the built-in table line by line: a YAML parser takes longer for it
// than all the rest of a plan.
func ReadTable() Table {
	var t Table
	var without []string
	for line := range strings.Lines(Types) {
		line = strings.TrimSuffix(line, "\n")
		if date, found := strings.CutPrefix(line, "date: "); found {
			t.Date = date
		}
		if list, found := strings.CutPrefix(line, "withoutPrefixes: ["); found {
			without = strings.Split(strings.TrimSuffix(list, "]"), ", ")
		}
		if typ, ok := readType(line); ok {
			typ.Prefixes = TakesPrefixes(typ.Name, without)
			t.Types = append(t.Types, typ)
		}
	}
	return t
}

func readType(line string) (Type, bool) {
	name, rest, found := strings.Cut(line, ": {enis: ")
	enis, ips, _ := strings.Cut(strings.TrimSuffix(rest, "}"), ", ipsPerENI: ")
	return Type{Name: strings.TrimSpace(name), ENIs: number(enis), IPs: number(ips)}, found
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // of our own table
	return n
}

// TakesPrefixes tells whether ENIs of a type take prefixes: those of the Nitro system
// and of bare metal do, those of the listed older families don't.
func TakesPrefixes(name string, without []string) bool {
	family, size, _ := strings.Cut(name, ".")
	return strings.HasPrefix(size, "metal") || !slices.Contains(without, family)
}

// Find returns a type of the table.
func (t Table) Find(name string) (Type, bool) {
	at, found := slices.BinarySearchFunc(t.Types, name, func(t Type, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return Type{}, false
	}
	return t.Types[at], true
}
