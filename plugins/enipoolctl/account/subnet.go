package account

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// SubnetFlags are the flags that say which subnets there are, as they are typed.
type SubnetFlags struct {
	Subnets   []string
	available []string
	Reserved  int // addresses of each that the cloud keeps
}

// Register adds the flags to the command; usage is that of --subnet.
func (f *SubnetFlags) Register(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Subnets, "subnet", nil, usage)
	flags.StringSliceVar(&f.available, "available", nil, "free addresses of a partly used subnet, as SUBNET=N, or N if there is one subnet; repeatable")
}

// Complete makes the shell offer values of the flags.
func (f *SubnetFlags) Complete(cmd *cobra.Command) {
	cli.Offer(cmd, "subnet")
	_ = cmd.RegisterFlagCompletionFunc("available", f.OfferIDs("="))
}

// OfferIDs returns a completion that offers the IDs of the subnets that are typed already, each
// with the suffix.
func (f *SubnetFlags) OfferIDs(suffix string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var list []string
		for _, text := range f.Subnets { // cobra reads them twice
			if id := SpellSubnet(text).ID + suffix; !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// Parse reads --subnet and --available. Each subnet of the result has its free addresses.
func (f *SubnetFlags) Parse() ([]capacity.Subnet, error) {
	list := make([]capacity.Subnet, len(f.Subnets))
	for i, text := range f.Subnets {
		list[i] = SpellSubnet(text)
		list[i].Available = -1 // nobody said it yet; 0 is what a full subnet has
		if list[i].ID == "" {
			return nil, fmt.Errorf("--subnet %q: has no ID or CIDR", text)
		}
		if cidr, found := CIDROf(text); found {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil {
				return nil, fmt.Errorf("--subnet %s: %q is no network; write it like 10.0.0.0/24", text, cidr)
			}
			list[i].CIDR = prefix
			if list[i].Available, err = capacity.Usable(prefix, f.Reserved); err != nil {
				return nil, fmt.Errorf("--subnet %s: %w", text, err)
			}
		}
		if first := FindSubnet(list[:i], list[i].ID); first != nil {
			return nil, fmt.Errorf("--subnet %s: %s is given twice", text, first.ID)
		}
	}
	if a, b, found := capacity.Overlap(list); found {
		return nil, fmt.Errorf("--subnet %s overlaps --subnet %s", a.ID, b.ID)
	}
	return list, f.setAvailable(list)
}

// SpellSubnet returns ID and zone of [ID=]CIDR[@ZONE] or ID[@ZONE]. A CIDR without an ID is the ID.
func SpellSubnet(text string) capacity.Subnet {
	name, zone, _ := strings.Cut(text, "@")
	id, _, _ := strings.Cut(name, "=")
	return capacity.Subnet{ID: id, Zone: zone}
}

// CIDROf returns the CIDR of [ID=]CIDR[@ZONE], false where there is none. It need not be valid.
func CIDROf(text string) (string, bool) {
	name, _, _ := strings.Cut(text, "@")
	if _, cidr, found := strings.Cut(name, "="); found {
		return cidr, true
	}
	return name, strings.Contains(name, "/")
}

// FindSubnet returns the subnet with this ID or network, nil if there is none.
func FindSubnet(list []capacity.Subnet, id string) *capacity.Subnet {
	i := slices.IndexFunc(list, func(s capacity.Subnet) bool {
		return s.ID == id || s.CIDR.IsValid() && s.CIDR.String() == id
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

func (f *SubnetFlags) setAvailable(list []capacity.Subnet) error {
	said := map[string]bool{}
	for _, text := range f.available {
		id, count, found := strings.Cut(text, "=")
		if !found {
			if count = id; len(list) != 1 {
				return fmt.Errorf("--available %s: say of which subnet, like %s=%s", text, firstID(list), text)
			}
			id = list[0].ID
		}
		s := FindSubnet(list, id)
		if s == nil {
			return fmt.Errorf("--available %s: there is no --subnet %s", text, id)
		}
		n, err := strconv.Atoi(count)
		switch {
		case err != nil || n < 0 || n > cli.Most:
			return fmt.Errorf("--available %s: %s is no number of addresses", text, count)
		// Before the next case: Available is the number that was said first, and not the subnet's size.
		case said[s.ID]:
			return fmt.Errorf("--available %s: said twice of %s", text, s.ID)
		case s.CIDR.IsValid() && n > s.Available:
			return fmt.Errorf("--available %s: %s has only %d, as the cloud keeps %d", text, s.CIDR, s.Available, f.Reserved)
		}
		s.Available, said[s.ID] = n, true
	}
	// An ID alone says nothing of the subnet's size, and an address alone lacks its mask.
	for _, s := range list {
		if s.Available < 0 {
			if _, err := netip.ParseAddr(s.ID); err == nil {
				return fmt.Errorf("--subnet %s: has no mask; write it like %s/24", s.ID, s.ID)
			}
			return fmt.Errorf("--subnet %s: give its network, like %s=10.0.0.0/24, or its free addresses with --available %s=N", s.ID, s.ID, s.ID)
		}
	}
	return nil
}

func firstID(list []capacity.Subnet) string {
	if len(list) == 0 {
		return "ID"
	}
	return list[0].ID
}
