package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// machine is one with the name that people know it by.
type machine struct {
	name string
	capacity.Machine
}

// asGiven is the name of a machine of which there are numbers alone.
const asGiven = "as given"

func (m machine) String() string {
	what := fmt.Sprintf("%d ENIs", m.ENIs)
	if m.ENIs == 1 {
		what = "1 ENI"
	}
	if m.MainNIC {
		what = "its main interface"
	}
	return fmt.Sprintf("%s: %s of %d addresses", m.name, what, m.V4)
}

// machineFlags are the flags that say what a node carries, as they are typed.
type machineFlags struct {
	cloud                    string // aws or baidu; "" until the types tell
	types                    []string
	limits, kind, memory     string
	cpus, maxENIs, ipsPerENI int
	prefixes                 bool

	given func(flag string) bool
}

func (f *machineFlags) register(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	f.given = flags.Changed
	flags.StringSliceVar(&f.types, "instance-type", nil, usage)
	flags.StringVar(&f.limits, "limits", "", "a table of instance types in place of the built-in one")
	flags.StringVar(&f.kind, "kind", string(capacity.BCC), "kind of Baidu's machine: bcc, bbc, ebc, or ebc-main for one that takes no ENIs")
	flags.IntVar(&f.cpus, "cpus", 0, "CPUs of a node")
	flags.StringVar(&f.memory, "memory", "", "memory of a node in GiB, like 64 or 64Gi, or in MiB, like 65536Mi")
	flags.IntVar(&f.maxENIs, "max-enis", 0, "most ENIs of a node")
	flags.IntVar(&f.ipsPerENI, "ips-per-eni", 0, "most addresses of an ENI, its primary among them")
	flags.BoolVar(&f.prefixes, "prefixes", false, "in the place of each secondary address an ENI has a /28 prefix, as with cloud.prefixes")
}

func (f *machineFlags) complete(cmd *cobra.Command) {
	var kinds []string
	for _, k := range capacity.Kinds() {
		kinds = append(kinds, string(k))
	}
	cli.Offer(cmd, "cloud", plannedClouds()...)
	cli.Offer(cmd, "kind", kinds...)
	for _, name := range []string{"cpus", "memory", "max-enis", "ips-per-eni"} {
		cli.Offer(cmd, name)
	}
	_ = cmd.RegisterFlagCompletionFunc("instance-type", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		table, err := f.table()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return table.names(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.MarkFlagFilename("limits", "yaml", "yml")
}

// checkNumbers checks numbers that mean the same with all machines.
func (f *machineFlags) checkNumbers() error {
	return errors.Join(f.least("cpus", f.cpus, 1), f.least("max-enis", f.maxENIs, 1), f.least("ips-per-eni", f.ipsPerENI, 2))
}

// least checks the number of a flag that may be absent.
func (f *machineFlags) least(flag string, n, least int) error {
	if !f.given(flag) {
		return nil
	}
	return cli.AtLeast(flag, n, least)
}

func (f *machineFlags) table() (limitTable, error) {
	if f.limits != "" {
		return readLimits(f.limits)
	}
	return builtinLimits(), nil
}

// machines tells what nodes carry, and settles the cloud on the way.
func (f *machineFlags) machines() ([]machine, error) {
	if _, known := defaultsOf(f.cloud); f.given("cloud") && !known {
		return nil, fmt.Errorf("--cloud %s: must be one of %s", f.cloud, strings.Join(plannedClouds(), ", "))
	}
	table, err := f.table()
	if err != nil {
		return nil, err
	}
	list, err := f.described(table)
	if err != nil {
		return nil, err
	}
	if err := f.settleCloud(table); err != nil {
		return nil, err
	}
	for i, m := range list {
		m.ENIs, m.V4 = cmp.Or(f.maxENIs, m.ENIs), cmp.Or(f.ipsPerENI, m.V4)
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("--max-enis, --ips-per-eni: %w", err)
		}
		if list[i], err = f.inPrefixes(m, table); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// inPrefixes returns the machine as it is with prefixes, if they are wanted.
func (f *machineFlags) inPrefixes(m machine, table limitTable) (machine, error) {
	_, listed := table.types[m.name]
	switch {
	case !f.prefixes:
		return m, nil
	case f.cloud == "baidu" || m.name != asGiven && !listed:
		return m, errors.New("--prefixes: ENIs of Baidu take none")
	case table.noPrefixes[m.name]:
		return m, fmt.Errorf("--prefixes: ENIs of %s take none; say --prefixes=false", m.name)
	}
	bits := simulate.EC2().Driver.Bits4
	m.Machine = m.InPrefixes(eni.Block{Bits: bits, Size: 1 << (32 - bits)})
	return m, nil
}

// sizes tells whether flags are given that Baidu's rules go by.
func (f *machineFlags) sizes() bool { return f.given("cpus") || f.given("memory") || f.given("kind") }

// described returns the machines without the numbers that win over all.
func (f *machineFlags) described(table limitTable) ([]machine, error) {
	switch sized := f.sizes(); {
	case len(f.types) > 0 && sized:
		return nil, errors.New("--instance-type: tells CPUs and memory already; leave out --cpus, --memory and --kind")
	case len(f.types) > 0:
		var list []machine
		for _, name := range slices.Compact(slices.Sorted(slices.Values(f.types))) {
			m, err := f.typed(name, table)
			if err != nil {
				return nil, err
			}
			list = append(list, machine{name, m})
		}
		return list, nil
	case sized:
		m, err := f.sized()
		return []machine{m}, err
	case f.maxENIs > 0 && f.ipsPerENI > 0:
		return []machine{{name: asGiven}}, nil
	}
	return nil, errors.New("--instance-type: say what a node carries: a type, --cpus and --memory, or --max-enis and --ips-per-eni")
}

func (f *machineFlags) typed(name string, table limitTable) (capacity.Machine, error) {
	if limits, found := table.types[name]; found && (f.limits != "" || f.cloud != "baidu") {
		return capacity.Machine{Limits: limits}, nil
	}
	if f.cloud == "aws" {
		return capacity.Machine{}, fmt.Errorf("--instance-type %s: is not in %s; give --max-enis and --ips-per-eni, or a table with --limits", name, table.from)
	}
	m, err := capacity.BaiduType(name)
	switch {
	case errors.Is(err, capacity.ErrKind) && f.cloud == "baidu":
		return m, fmt.Errorf("--instance-type %s: is no type of Baidu's like bcc.g5.c16m64; give --cpus and --memory, or --cloud aws", name)
	case errors.Is(err, capacity.ErrKind):
		return m, fmt.Errorf("--instance-type %s: is not in %s and no type of Baidu's like bcc.g5.c16m64; give --cpus and --memory, or a table with --limits", name, table.from)
	case err != nil:
		return m, fmt.Errorf("--instance-type %s: %w", name, err)
	}
	return m, nil
}

// sized goes by Baidu's rules.
func (f *machineFlags) sized() (machine, error) {
	kind := capacity.Kind(f.kind)
	var words []string
	switch {
	case f.cloud == "aws":
		return machine{}, errors.New("--cpus, --memory, --kind: are for --cloud baidu; on aws give --instance-type")
	case !slices.Contains(capacity.Kinds(), kind):
		return machine{}, fmt.Errorf("--kind %s: must be bcc, bbc, ebc or ebc-main", f.kind)
	case kind.NeedsCPUs() && !f.given("cpus"):
		return machine{}, fmt.Errorf("--cpus: a %s needs it", kind)
	case kind.NeedsMemory() && !f.given("memory"):
		return machine{}, fmt.Errorf("--memory: a %s needs it", kind)
	}
	memory, err := parseMemory(f.memory)
	if err != nil {
		return machine{}, err
	}
	if f.given("cpus") {
		words = append(words, fmt.Sprintf("%d CPUs", f.cpus))
	}
	if f.given("memory") {
		words = append(words, memoryText(memory))
	}
	m, err := capacity.Baidu(kind, f.cpus, memory)
	return machine{strings.TrimSuffix(string(kind)+" with "+strings.Join(words, " and "), " with "), m}, err
}

// parseMemory reads GiB or MiB into MiB.
func parseMemory(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	digits, unit := text, 1024
	for _, suffix := range []string{"iB", "i"} {
		digits = strings.TrimSuffix(digits, suffix)
	}
	if whole, found := strings.CutSuffix(digits, "M"); found {
		digits, unit = whole, 1
	}
	n, err := strconv.Atoi(strings.TrimSuffix(digits, "G"))
	if err != nil || n < 0 || n > 1<<24 {
		return 0, fmt.Errorf("--memory %s: must be a whole number of GiB like 64 or 64Gi, or of MiB like 65536Mi", text)
	}
	if n*unit < 1024 {
		return 0, fmt.Errorf("--memory %s: must be at least 1 GiB", text)
	}
	return n * unit, nil
}

func memoryText(mib int) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%d GiB", mib/1024)
	}
	return fmt.Sprintf("%d MiB", mib)
}

// settleCloud chooses the cloud by the types if no flag does.
func (f *machineFlags) settleCloud(table limitTable) error {
	known := 0
	for _, name := range f.types {
		if _, found := table.types[name]; found {
			known++
		}
	}
	switch {
	case f.cloud == "" && known > 0 && known < len(f.types):
		return fmt.Errorf("--instance-type %s: are of different clouds; plan one at a time", strings.Join(f.types, ","))
	case f.cloud == "" && known > 0:
		f.cloud = "aws"
	}
	return nil
}
