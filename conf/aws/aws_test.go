package aws

import (
	"slices"
	"strings"
	"testing"
)

func TestTheTableKnowsTypesAsAWSDocumentsThem(t *testing.T) {
	table := ReadTable()
	for _, want := range []Type{
		{"t3.nano", 2, 2, true}, {"t2.nano", 2, 2, false}, {"m5.large", 3, 10, true}, {"m4.large", 2, 10, false},
		{"i3.large", 3, 10, false}, {"p4d.24xlarge", 15, 50, true}, {"c6i.8xlarge", 8, 30, true},
	} {
		if got, found := table.Find(want.Name); !found || got != want {
			t.Errorf("%+v, %t; want %+v", got, found, want)
		}
	}
	if got, found := table.Find("m5.huge"); found {
		t.Errorf("there is %+v", got)
	}
	if !TakesPrefixes("i3.metal", []string{"i3"}) || TakesPrefixes("i3.large", []string{"i3"}) {
		t.Error("of the older families bare metal alone takes prefixes")
	}
	if table.Date == "" || len(table.Types) < 1000 || !slices.IsSortedFunc(table.Types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d types of %q", len(table.Types), table.Date)
	}
	for _, typ := range table.Types {
		if typ.ENIs < 1 || typ.IPs < 1 {
			t.Errorf("%+v", typ)
		}
	}
}
