package account

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/pkg/topology"
	"github.com/enipool/enipool/pkg/topology/fit"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/manifest"
	"github.com/spf13/cobra"
	kjson "sigs.k8s.io/json"
)

// ObjectFlags are the flags that say which Subnets and PodSubnetTopologies a cluster has, as they are typed.
type ObjectFlags struct {
	Files  []string
	pods   []string
	Places int // of a node, kept for pods of topologies
}

// Objects are what the files say.
type Objects struct {
	Subnets    []crd.Subnet
	Topologies []fit.Asked
}

// Register adds the flags to the command.
func (f *ObjectFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.Files, "file", "f", nil, "a file with Subnets and PodSubnetTopologies as they are applied, or as kubectl get -o yaml prints them; - for stdin; repeatable")
	flags.StringSliceVar(&f.pods, "topology-pods", nil, "pods that a topology is to have at once, as NAME=N; repeatable; default: those that its object in --file tells of")
	flags.IntVar(&f.Places, "topology-places", 0, "addresses of a node that are kept for pods of topologies, as pool.topologyPlaces keeps them")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // the flag exists
	cli.Offer(cmd, "topology-pods")
	cli.Offer(cmd, "topology-places")
}

// ReadObjects reads the files.
func (f *ObjectFlags) ReadObjects(stdin io.Reader) (is Objects, err error) {
	for _, path := range f.Files {
		if err := is.readFile(path, stdin); err != nil {
			return Objects{}, fmt.Errorf("--file %s: %w", cli.Spelled(path), err)
		}
	}
	if len(f.Files) > 0 && len(is.Subnets)+len(is.Topologies) == 0 {
		return Objects{}, fmt.Errorf("--file %s: has no Subnet and no PodSubnetTopology", strings.Join(f.Files, ","))
	}
	return is, f.setPods(is.Topologies)
}

func (is *Objects) readFile(path string, stdin io.Reader) error {
	file, err := manifest.Open(path, stdin)
	if err != nil {
		return err
	}
	defer file.Close()
	list, err := manifest.Read(file)
	if err != nil {
		return err
	}
	for _, o := range list {
		// Files that are applied have other kinds too.
		if o.APIVersion != crd.GroupVersion.String() {
			continue
		}
		switch o.Kind {
		case "Subnet":
			err = is.addSubnet(o)
		case "PodSubnetTopology":
			err = is.addTopology(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (is *Objects) addSubnet(o manifest.Object) error {
	var s crd.Subnet
	if err := decode(o, &s); err != nil {
		return err
	}
	switch {
	case s.Name == "":
		return errors.New("subnet: has no name, which is the ID of the subnet")
	case !slices.Contains([]string{"", "Shared", "Exclusive", "Disabled"}, s.Spec.Use):
		return fmt.Errorf("subnet %s: use: %s: must be Shared, Exclusive or Disabled", s.Name, s.Spec.Use)
	case slices.ContainsFunc(is.Subnets, func(other crd.Subnet) bool { return other.Name == s.Name }):
		return fmt.Errorf("subnet %s: is there twice", s.Name)
	}
	is.Subnets = append(is.Subnets, s)
	return nil
}

func (is *Objects) addTopology(o manifest.Object) error {
	var t crd.PodSubnetTopology
	if err := decode(o, &t); err != nil {
		return err
	}
	read, err := t.Read()
	switch {
	case err != nil:
		return err
	case t.Name == "":
		return errors.New("topology: has no name")
	case len(t.Spec.Subnets) == 0:
		return fmt.Errorf("topology %s: names no subnet", t.Name)
	case t.Spec.Strategy.Type == string(topology.Elastic) && slices.ContainsFunc(t.Spec.Subnets, func(from crd.Source) bool { return len(from.Ranges) > 0 }):
		return fmt.Errorf("topology %s: ranges need strategy Sticky or Fixed", t.Name) // as the API server says it
	case slices.ContainsFunc(is.Topologies, func(other fit.Asked) bool { return other.Name == t.Name }):
		return fmt.Errorf("topology %s: is there twice", t.Name)
	}
	asked := fit.Asked{Topology: read}
	if t.Status.Pods != nil {
		asked.Pods = int(*t.Status.Pods)
	}
	is.Topologies = append(is.Topologies, asked)
	return nil
}

// decode reads an object, and refuses what its kind does not have: a slip of the pen would be planned without.
func decode(o manifest.Object, into any) error {
	unknown, err := kjson.UnmarshalStrict(o.Text, into)
	if err = errors.Join(append([]error{err}, unknown...)...); err != nil {
		return fmt.Errorf("%s: %w", o.Kind, cli.FirstLine(err))
	}
	return nil
}

// setPods takes in how many pods topologies are to have.
func (f *ObjectFlags) setPods(list []fit.Asked) error {
	for _, text := range f.pods {
		name, count, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(count)
		at := slices.IndexFunc(list, func(a fit.Asked) bool { return a.Name == name })
		switch {
		case err != nil || n < 0 || n > cli.Most:
			return fmt.Errorf("--topology-pods %s: must be NAME=N, like web=100", cli.Spelled(text))
		case at < 0:
			return fmt.Errorf("--topology-pods %s: no --file has a PodSubnetTopology %s", text, name)
		}
		list[at].Pods = n
	}
	return nil
}

// CarriesAcross tells whether ENIs of a cloud carry addresses of other subnets than their own.
func CarriesAcross(cloud string) bool {
	switch cloud {
	case "aws":
		return simulate.EC2().Driver.CrossSubnet
	case "baidu":
		return simulate.BCE().Driver.CrossSubnet
	}
	return false
}

// KeptText says how much of a node is kept for pods of topologies.
func KeptText(enis, places int) string {
	on := "of any ENI"
	switch {
	case enis == 1:
		on = "of 1 ENI"
	case enis > 1:
		on = fmt.Sprintf("of %d ENIs", enis)
	}
	return fmt.Sprintf("%d places %s are kept for pods of topologies", places, on)
}
