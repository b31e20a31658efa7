package account

import (
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

func TestTheBuiltInTableReadsLikeAnyOther(t *testing.T) {
	want, err := parseLimits("", []byte(awsLimits))
	if err != nil {
		t.Fatalf("planlimits.yaml%v", err)
	}
	got := builtinLimits()
	if diff := cmp.Diff([]any{want.types, want.noPrefixes}, []any{got.types, got.noPrefixes}); diff != "" {
		t.Error(diff)
	}
	if got.from != "the built-in table of 2026-08-11" || len(want.types) < 1000 {
		t.Errorf("%d types from %s", len(want.types), got.from)
	}
}

// As AWS documents them.
func TestTheBuiltInTableKnowsTypes(t *testing.T) {
	table := builtinLimits()
	for name, want := range map[string]eni.Limits{
		"t3.nano":      {ENIs: 2, V4: 2},
		"t3.small":     {ENIs: 3, V4: 4},
		"m5.large":     {ENIs: 3, V4: 10},
		"c6i.8xlarge":  {ENIs: 8, V4: 30},
		"m5.24xlarge":  {ENIs: 15, V4: 50},
		"p4d.24xlarge": {ENIs: 15, V4: 50}, // of its default network card, one of four
	} {
		if got := table.types[name]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, name := range table.typeNames() {
		if err := (capacity.Machine{Limits: table.types[name]}).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMemoryIsReadInGiBOrMiB(t *testing.T) {
	for text, want := range map[string]int{"": 0, "1": 1024, "64": 65536, "64G": 65536, "64Gi": 65536, "64GiB": 65536, "1024M": 1024, "65000Mi": 65000, "1500MiB": 1500} {
		if got, err := parseMemory(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "-1", "1023Mi", "1.5", "64T", "G", "1e3", "99999999999999999999"} {
		if got, err := parseMemory(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// An empty table is told like one without types, and a number said twice as that.
func TestWhatIsWrongIsToldOfWhatIsWrong(t *testing.T) {
	if _, err := parseLimits("", nil); err == nil || !strings.Contains(err.Error(), "has no types") {
		t.Errorf("an empty table: %v", err)
	}
	f := SubnetFlags{Subnets: []string{"a=10.0.0.0/24"}, available: []string{"a=10", "a=20"}}
	if _, err := f.Parse(); err == nil || err.Error() != "--available a=20: said twice of a" {
		t.Errorf("available addresses that are given twice: %v", err)
	}
}

func TestASubnetIsSpelledInFourWays(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/24":     "10.0.0.0/24||10.0.0.0/24|true",
		"10.0.0.0/24@z":   "10.0.0.0/24|z|10.0.0.0/24|true",
		"a=10.0.0.0/24@z": "a|z|10.0.0.0/24|true",
		"a@z":             "a|z|a|false",
	} {
		s := SpellSubnet(text)
		cidr, found := CIDROf(text)
		if got := fmt.Sprintf("%s|%s|%s|%v", s.ID, s.Zone, cidr, found); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
