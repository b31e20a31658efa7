package account

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
)

// Instance is what a node's instance carries.
type Instance struct {
	Name string // the instance type, or what flags say of it
	capacity.Instance
}

// AsGiven is the name of an instance of which only numbers are given.
const AsGiven = "as given"

// String describes the instance for errors.
func (m Instance) String() string {
	what := fmt.Sprintf("%d ENIs", m.ENIs)
	if m.ENIs == 1 {
		what = "1 ENI"
	}
	if m.MainNIC {
		what = "its main interface"
	}
	return fmt.Sprintf("%s: %s of %d addresses", m.Name, what, m.V4)
}

// SizeGiven tells whether flags are given that Baidu's rules go by.
func (f *InstanceFlags) SizeGiven() bool {
	return f.Given("cpus") || f.Given("memory") || f.Given("kind")
}

// describedBy returns the instances by type or size, without --max-enis and --ips-per-eni, which
// count before those.
func (f *InstanceFlags) describedBy(table limitTable) ([]Instance, error) {
	switch sized := f.SizeGiven(); {
	case len(f.Types) > 0 && sized:
		return nil, errors.New("--instance-type: tells CPUs and memory already; leave out --cpus, --memory and --kind")
	case len(f.Types) > 0:
		var list []Instance
		// A type that is given twice is planned once.
		for _, name := range slices.Compact(slices.Sorted(slices.Values(f.Types))) {
			m, err := f.findType(name, table)
			if err != nil {
				return nil, err
			}
			list = append(list, Instance{name, m})
		}
		return list, nil
	case sized:
		m, err := f.ruledBySize()
		return []Instance{m}, err
	case f.MaxENIs > 0 && f.IPsPerENI > 0:
		return []Instance{{Name: AsGiven}}, nil
	case f.MaxENIs > 0:
		return nil, errors.New("--ips-per-eni: --max-enis needs it, unless --instance-type, or --cpus and --memory, say what an ENI holds")
	case f.IPsPerENI > 0:
		return nil, errors.New("--max-enis: --ips-per-eni needs it, unless --instance-type, or --cpus and --memory, say how many ENIs a node has")
	}
	return nil, errors.New("--instance-type: say what a node carries: a type, --cpus and --memory, or --max-enis and --ips-per-eni")
}

func (f *InstanceFlags) findType(name string, table limitTable) (capacity.Instance, error) {
	if limits, found := table.types[name]; found && (f.Limits != "" || f.Cloud != "baidu") {
		return capacity.Instance{Limits: limits}, nil
	}
	if f.Cloud == "aws" {
		return capacity.Instance{}, fmt.Errorf("--instance-type %s: is not in %s; give --max-enis and --ips-per-eni, or a table with --limits", name, table.without(name))
	}
	m, err := capacity.BaiduType(name)
	switch {
	case errors.Is(err, capacity.ErrKind) && f.Cloud == "baidu":
		return m, fmt.Errorf("--instance-type %s: is no type of Baidu's like bcc.g5.c16m64; give --cpus and --memory, or --cloud aws", name)
	case errors.Is(err, capacity.ErrKind):
		return m, fmt.Errorf("--instance-type %s: is not in %s and no type of Baidu's like bcc.g5.c16m64; give --cpus and --memory, or a table with --limits", name, table.without(name))
	case err != nil:
		return m, fmt.Errorf("--instance-type %s: %w", name, err)
	}
	return m, nil
}

// ruledBySize returns an instance of Baidu's by kind, CPUs and memory.
func (f *InstanceFlags) ruledBySize() (Instance, error) {
	kind := capacity.Kind(f.kind)
	var words []string
	switch {
	case f.Cloud == "aws":
		return Instance{}, errors.New("--cpus, --memory, --kind: are for --cloud baidu; on aws give --instance-type")
	case !slices.Contains(capacity.Kinds(), kind):
		return Instance{}, fmt.Errorf("--kind %s: must be bcc, bbc, ebc or ebc-main", f.kind)
	case kind.NeedsCPUs() && !f.Given("cpus"):
		return Instance{}, fmt.Errorf("--cpus: a %s needs it", kind)
	case kind.NeedsMemory() && !f.Given("memory"):
		return Instance{}, fmt.Errorf("--memory: a %s needs it", kind)
	}
	memory, err := parseMemory(f.memory)
	if err != nil {
		return Instance{}, err
	}
	if f.Given("cpus") {
		words = append(words, fmt.Sprintf("%d CPUs", f.cpus))
	}
	if f.Given("memory") {
		words = append(words, memoryText(memory))
	}
	m, err := capacity.Baidu(kind, f.cpus, memory)
	return Instance{strings.TrimSuffix(string(kind)+" with "+strings.Join(words, " and "), " with "), m}, err
}

// parseMemory reads a number of GiB or MiB and returns MiB.
func parseMemory(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	digits, unit := text, 1024
	// GB is refused: some mean powers of ten by it.
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
