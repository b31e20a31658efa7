package sim

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Each line breaks an account of two ENIs, the first of which is attached.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	v4 := func(a *Account) *pool { return a.subnets["a"].pool4 }
	for _, tt := range []struct {
		name  string
		spoil func(a *Account, one, two *nic)
		want  string
	}{
		{"nothing", func(*Account, *nic, *nic) {}, ""},
		{"an address twice", func(a *Account, one, two *nic) { two.V4 = one.V4 }, "is on ENI"},
		{"an address of another in the pool", func(a *Account, one, two *nic) { v4(a).used[one.V4[0]] = two.ID }, "in its pool"},
		{"a reserved address", func(a *Account, one, two *nic) { one.V4 = addrs("10.0.0.3") }, "reserved or not of subnet"},
		{"an address of no subnet", func(a *Account, one, two *nic) { one.V4 = addrs("10.9.0.9") }, "reserved or not of subnet"},
		{"an address of another subnet that it was not lent", func(a *Account, one, two *nic) { one.V4 = addrs("10.0.1.9") }, "in its pool"},
		{"a prefix of another in the pool", func(a *Account, one, two *nic) { v4(a).blocks[one.Prefixes[0]] = two.ID }, "is another's in its pool"},
		{"a prefix that nobody has", func(a *Account, one, two *nic) { v4(a).blocks[netip.MustParsePrefix("10.0.0.32/28")] = "nobody" }, "of nobody"},
		{"an address in a prefix", func(a *Account, one, two *nic) { v4(a).use(one.Prefixes[0].Addr(), two.ID) }, "in prefix"},
		{"an address of nobody", func(a *Account, one, two *nic) { v4(a).use(netip.MustParseAddr("10.0.0.60"), "nobody") }, "which does not exist"},
		{"a wrong count of a block", func(a *Account, one, two *nic) { v4(a).inside[netip.MustParsePrefix("10.0.0.32/28")] = 3 }, "counted as 3"},
		{"a used address that is free", func(a *Account, one, two *nic) { v4(a).freed = one.V4 }, "listed as free"},
		{"a free address that is not listed", func(a *Account, one, two *nic) { v4(a).next = netip.MustParseAddr("10.0.0.60") }, "counted as"},
		{"more slots than the type has", func(a *Account, one, two *nic) { a.types["small"] = Type{Name: "small", ENIs: 3, V4: 2, V6: 6} }, "it may have 2"},
		{"more ENIs than the type has", func(a *Account, one, two *nic) { a.types["small"] = Type{Name: "small", ENIs: 1, V4: 6, V6: 6} }, "it may have 1"},
		{"more ENIs than the account may have", func(a *Account, one, two *nic) { a.o.MaxENIs = 2 }, "it may have 2"},
		{"a status without attachment", func(a *Account, one, two *nic) { two.Status = InUse }, "is in-use with attachment"},
		{"an index twice", func(a *Account, one, two *nic) { one.Attachment = &Attachment{Instance: "i", Status: Attached} }, "at [0 0]"},
		{"an instance without its primary ENI", func(a *Account, one, two *nic) { a.vms["i"].nics = a.vms["i"].nics[1:] }, "no primary ENI"},
		{"an ENI of another instance", func(a *Account, one, two *nic) { one.Attachment = &Attachment{Instance: "x", Index: 1} }, "lists ENI"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newHalves(Options{})
			one := a.byID[makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 2, BlocksV4: 1}}).ID]
			two := a.byID[makeENI(t, a, Create{Subnet: "a"}).ID]
			_, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
			must(t, err)
			tt.spoil(a, one, two)
			err = a.Check()
			if (err == nil) != (tt.want == "") || err != nil && !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
				return strings.Contains(line, tt.want)
			}) {
				t.Errorf("Check says %v, want %q", err, tt.want)
			}
		})
	}
}
