package account

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// InstanceFlags are the flags that say what a node carries, as they are typed.
type InstanceFlags struct {
	Cloud              string // aws or baidu; "" until the types tell
	Types              []string
	Limits             string // the file of --limits
	kind, memory       string
	cpus               int
	MaxENIs, IPsPerENI int
	Prefixes           bool

	// Given tells whether a flag of the command was typed.
	Given func(flag string) bool
}

// Register adds the flags to the command; usage is that of --instance-type.
func (f *InstanceFlags) Register(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	f.Given = flags.Changed
	flags.StringSliceVar(&f.Types, "instance-type", nil, usage)
	flags.StringVar(&f.Limits, "limits", "", "a table of instance types in place of the built-in one")
	flags.StringVar(&f.kind, "kind", string(capacity.BCC), "kind of Baidu's machine: bcc, bbc, ebc, or ebc-main for one that takes no ENIs")
	flags.IntVar(&f.cpus, "cpus", 0, "CPUs of a node")
	flags.StringVar(&f.memory, "memory", "", "memory of a node in GiB, like 64 or 64Gi, or in MiB, like 65536Mi")
	flags.IntVar(&f.MaxENIs, "max-enis", 0, "most ENIs of a node")
	flags.IntVar(&f.IPsPerENI, "ips-per-eni", 0, "most addresses of an ENI, its primary among them")
	flags.BoolVar(&f.Prefixes, "prefixes", false, "in the place of each secondary address an ENI has a /28 prefix, as with cloud.prefixes")
}

// Complete makes the shell offer values of the flags.
func (f *InstanceFlags) Complete(cmd *cobra.Command) {
	var kinds []string
	for _, k := range capacity.Kinds() {
		kinds = append(kinds, string(k))
	}
	cli.Offer(cmd, "cloud", Clouds()...)
	cli.Offer(cmd, "kind", kinds...)
	for _, name := range []string{"cpus", "memory", "max-enis", "ips-per-eni"} {
		cli.Offer(cmd, name)
	}
	_ = cmd.RegisterFlagCompletionFunc("instance-type", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		table, err := f.readTable()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return table.typeNames(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.MarkFlagFilename("limits", "yaml", "yml")
}

// CheckNumbers checks the numbers whose bounds are the same for all instances.
func (f *InstanceFlags) CheckNumbers() error {
	return errors.Join(f.AtLeast("cpus", f.cpus, 1), f.AtLeast("max-enis", f.MaxENIs, 1), f.AtLeast("ips-per-eni", f.IPsPerENI, 2))
}

// AtLeast is cli.AtLeast for a flag that may be absent.
func (f *InstanceFlags) AtLeast(flag string, n, least int) error {
	if !f.Given(flag) {
		return nil
	}
	return cli.AtLeast(flag, n, least)
}

func (f *InstanceFlags) readTable() (limitTable, error) {
	if f.Limits != "" {
		return readLimits(f.Limits)
	}
	return builtinLimits(), nil
}

// Instances returns what the flags say that nodes carry. It sets Cloud if a type tells it.
func (f *InstanceFlags) Instances() ([]Instance, error) {
	if _, known := DefaultsOf(f.Cloud); f.Given("cloud") && !known {
		return nil, fmt.Errorf("--cloud %s: must be one of %s", f.Cloud, strings.Join(Clouds(), ", "))
	}
	table, err := f.readTable()
	if err != nil {
		return nil, err
	}
	// The types come before the cloud: they may tell it.
	list, err := f.describedBy(table)
	if err != nil {
		return nil, err
	}
	if err := f.settleCloud(table); err != nil {
		return nil, err
	}
	for i, m := range list {
		m.ENIs, m.V4 = cmp.Or(f.MaxENIs, m.ENIs), cmp.Or(f.IPsPerENI, m.V4)
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("--max-enis, --ips-per-eni: %w", err)
		}
		if list[i], err = f.inPrefixes(m, table); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// inPrefixes returns the instance with a prefix in the place of each secondary address, if
// --prefixes says so.
func (f *InstanceFlags) inPrefixes(m Instance, table limitTable) (Instance, error) {
	_, listed := table.types[m.Name]
	switch {
	case !f.Prefixes:
		return m, nil
	case f.Cloud == "baidu" || m.Name != AsGiven && !listed:
		return m, errors.New("--prefixes: ENIs of Baidu take none")
	case table.noPrefixes[m.Name]:
		return m, fmt.Errorf("--prefixes: ENIs of %s take none; say --prefixes=false", m.Name)
	}
	bits := simulate.EC2().Driver.Bits4
	m.Machine = m.InPrefixes(eni.Block{Bits: bits, Size: 1 << (32 - bits)})
	return m, nil
}

// settleCloud sets Cloud to aws if --cloud is absent and the table of AWS has all types. It refuses
// types of which the table has only some.
func (f *InstanceFlags) settleCloud(table limitTable) error {
	known := 0
	for _, name := range f.Types {
		if _, found := table.types[name]; found {
			known++
		}
	}
	switch {
	case f.Cloud == "" && known > 0 && known < len(f.Types):
		return fmt.Errorf("--instance-type %s: are of different clouds; plan one at a time", strings.Join(f.Types, ","))
	case f.Cloud == "" && known > 0:
		f.Cloud = "aws"
	}
	return nil
}
