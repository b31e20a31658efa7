package cce

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// imported is what becomes of one psts or cpsts.
type imported struct {
	from       string
	topology   crd.PodSubnetTopology
	exclusive  bool // its addresses outlive pods: its subnets must be the topologies' alone
	namespaces string
	notes      []string // what is otherwise than it was
	constraint []string // lines for the template of pods
}

func (i *imported) note(format string, args ...any) {
	i.notes = append(i.notes, fmt.Sprintf(format, args...))
}

// leftOut is an object of which nothing is carried over.
type leftOut struct{ from, why string }

// result is what becomes of all objects.
type result struct {
	all     []imported
	subnets []string // to be Exclusive
	left    []leftOut
	made    []leftOut // by CCE, of objects that are carried over
}

// convert decides what becomes of objects. What can't be carried over is said in notes, and an object of which nothing can is left out with the reason.
func convert(objects []object) (is result) {
	// A cpsts may stand behind what CCE has made of it, and a Subnet behind who names it.
	clusters := map[string]bool{}
	exclusive, read := map[string]bool{}, map[string]subnetOf{}
	for _, o := range objects {
		switch o.Kind {
		case ofCluster:
			clusters[o.Metadata.Name] = true
		case subnetKind:
			read[o.Metadata.Name] = readSubnet(o)
			if read[o.Metadata.Name].Exclusive {
				exclusive[o.Metadata.Name] = true
			}
		}
	}
	names, titles := map[string]bool{}, map[string]bool{}
	for _, o := range objects {
		if o.Kind == subnetKind && strings.HasPrefix(o.APIVersion, group+"/") {
			continue
		}
		if of, made := strings.CutPrefix(o.Metadata.Name, o.Metadata.Namespace+"-"); o.Kind == ofNamespace && made && clusters[of] {
			is.made = append(is.made, leftOut{o.title(), fmt.Sprintf("CCE has made it of %s %s", ofCluster, of)})
			continue
		}
		if why := whyNot(o, titles[o.title()]); why != "" {
			is.left = append(is.left, leftOut{o.title(), why})
			continue
		}
		titles[o.title()] = true
		one, err := convertOne(o)
		if err != nil {
			is.left = append(is.left, leftOut{o.title(), err.Error()})
			continue
		}
		one.topology.Name = chooseName(o, names)
		names[one.topology.Name] = true
		if one.exclusive {
			for _, from := range one.topology.Spec.Subnets {
				exclusive[from.ID] = true
			}
		}
		is.all = append(is.all, one)
	}
	is.subnets = slices.Sorted(maps.Keys(exclusive))
	slices.SortFunc(is.all, func(a, b imported) int { return cmp.Compare(a.topology.Name, b.topology.Name) })
	noteTies(is.all)
	noteShared(is.all, exclusive)
	noteUnserved(is.all, exclusive, read)
	return is
}

// whyNot returns why an object is not read at all, "" if it is.
func whyNot(o object, twice bool) string {
	version, ours := strings.CutPrefix(o.APIVersion, group+"/")
	switch {
	case !ours || o.Kind != ofNamespace && o.Kind != ofCluster:
		return fmt.Sprintf("apiVersion %s: it is no PodSubnetTopologySpread or ClusterPodSubnetTopologySpread of %s", cmp.Or(o.APIVersion, "-"), group)
	case o.Kind == ofNamespace && version != "v2", o.Kind == ofCluster && version != "v2alpha1":
		return fmt.Sprintf("apiVersion %s is another one than is known: %s/v2, of cluster-wide ones %[2]s/v2alpha1", o.APIVersion, group)
	case o.Metadata.Name == "":
		return "it has no name"
	case o.Kind == ofNamespace && o.Metadata.Namespace == "":
		return "it has no namespace: write metadata.namespace"
	case twice:
		return "it is there twice; the first one counts"
	}
	return ""
}

// convertOne returns the topology of a psts or cpsts, without its name.
func convertOne(o object) (is imported, err error) {
	s, unknown, err := readSpread(o)
	if err != nil {
		return is, err
	}
	is.from, is.notes = o.title(), unknown
	is.topology.TypeMeta = metav1.TypeMeta{APIVersion: crd.GroupVersion.String(), Kind: "PodSubnetTopology"}
	spec := &is.topology.Spec
	if s.Name != "" && s.Name != o.Metadata.Name {
		is.note("spec.name is %s: topologies have no second name", s.Name)
	}
	is.setPriority(s.Priority)
	if o.Metadata.Deleted != "" {
		is.note("it is being deleted since %s: leave it out if its pods are to lose these addresses", o.Metadata.Deleted)
	}
	if s.Selector != nil {
		if spec.PodSelector = *s.Selector; len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0 {
			is.note("selector is empty, which CCE refuses in a new one: here it selects all pods")
		}
	}
	is.setNamespaces(o, s)
	if err := is.setStrategy(s.Strategy); err != nil {
		return is, err
	}
	if err := is.setSubnets(s.Subnets); err != nil {
		return is, err
	}
	is.setConstraint(s) // after the selector, which stands in it
	is.noteUnavailable(readGiven(o))
	is.noteAddresses(o)
	return is, is.check()
}

// mostPriority is the highest that the schema takes.
const mostPriority = 1_000_000

func (i *imported) setPriority(n int32) {
	i.topology.Spec.Priority = n
	switch {
	case n < 0:
		i.topology.Spec.Priority = 0
		i.note("priority %d becomes 0, the least there is: the order among those below is lost", n)
	case n > mostPriority:
		i.topology.Spec.Priority = mostPriority
		i.note("priority %d becomes %d, the most there is: the order among those above is lost", n, mostPriority)
	}
}

// nameLabel is the label of a namespace that has its name.
const nameLabel = "kubernetes.io/metadata.name"

func (i *imported) setNamespaces(o object, s spread) {
	into := &i.topology.Spec.NamespaceSelector
	switch {
	case o.Kind == ofNamespace:
		// Topologies have no namespace: without this one it would be for all of them.
		into.MatchLabels = map[string]string{nameLabel: o.Metadata.Namespace}
		i.namespaces = "namespace " + o.Metadata.Namespace
		if s.NamespaceSelector != nil {
			i.note("namespaceSelector is one of %s: here only namespace %s counts", ofCluster, o.Metadata.Namespace)
		}
		if o.Metadata.Namespace == "kube-system" {
			i.note("CCE gives pods of kube-system none of its addresses; here they get them once the namespace has the label")
		}
	case s.NamespaceSelector == nil:
		i.namespaces = "each namespace whose pods are meant"
		i.note("it is for all namespaces but kube-system")
	default:
		*into = *s.NamespaceSelector
		i.namespaces = "each namespace that the namespaceSelector of " + o.Metadata.Name + " selects"
		if len(into.MatchExpressions) > 0 {
			i.note("CCE does not read matchExpressions of a namespaceSelector; here they count")
		}
	}
}

// mostNamed is how many addresses a note names.
const mostNamed = 5

// noteUnavailable says what CCE could not use itself.
func (i *imported) noteUnavailable(g given) {
	if ids := slices.Sorted(maps.Keys(g.Unavailable)); len(ids) > 0 {
		i.note("status.unavailableSubnets has %s: CCE could not use it; the Subnet's state tells whether the operator can", strings.Join(ids, ", "))
	}
}

// noteAddresses says which addresses pods have: what is kept of them is kept by CCE.
func (i *imported) noteAddresses(o object) {
	pods := readGiven(o).listPods()
	if len(pods) == 0 {
		return
	}
	more := ""
	if len(pods) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(pods)-mostNamed)
	}
	i.note("addresses that pods have are not carried over: %s%s; a pod that is made again gets the lowest one that is free", strings.Join(pods[:min(len(pods), mostNamed)], ", "), more)
}
