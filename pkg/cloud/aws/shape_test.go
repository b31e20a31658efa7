package aws

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
)

// Cards of accelerated types, as those who launch them report: a p6-b300.48xlarge has 17, of
// which the first takes no EFA (github.com/aws/aws-parallelcluster/issues/7143); of a
// p6e-gb200.36xlarge's 17 every other one takes an EFA-only interface and nothing else, and all
// of them together fewer than the sum (github.com/aws/aws-parallelcluster/pull/6930).
func TestNetworkCardsThatTakeNoPlainENIHaveNoRoom(t *testing.T) {
	const plain, efa, efaOnly = types.NetworkCardInterfaceTypeInterface, types.NetworkCardInterfaceTypeEfa, types.NetworkCardInterfaceTypeEfaOnly
	type card struct {
		most int32
		of   []types.NetworkCardInterfaceType
	}
	all, alone := []types.NetworkCardInterfaceType{plain, efa, efaOnly}, []types.NetworkCardInterfaceType{efaOnly}
	for name, tt := range map[string]struct {
		total int32
		cards []card
		want  []int
	}{
		"one card":                       {4, []card{{4, all}}, nil},
		"one of before cards had types":  {15, []card{{15, nil}}, nil},
		"both take ENIs":                 {8, []card{{4, all}, {4, all}}, []int{4, 4}},
		"every other one":                {4, []card{{2, all}, {1, alone}, {2, all}, {1, alone}}, []int{2, 0, 2, 0}},
		"the first one alone takes ENIs": {6, []card{{4, all}, {1, alone}, {1, alone}}, []int{4, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &types.NetworkInfo{MaximumNetworkInterfaces: aws.Int32(tt.total), Ipv4AddressesPerInterface: aws.Int32(50)}
			for index, c := range tt.cards {
				n.NetworkCards = append(n.NetworkCards, types.NetworkCardInfo{NetworkCardIndex: aws.Int32(int32(index)),
					MaximumNetworkInterfaces: aws.Int32(c.most), InterfaceTypes: c.of})
			}
			s, err := readType(types.InstanceTypeInfo{InstanceType: "p.large", NetworkInfo: n})
			if err != nil || s.ENIs != int(tt.total) || !slices.Equal(s.Cards, tt.want) {
				t.Errorf("%d ENIs on cards %v, %v; want %d on %v", s.ENIs, s.Cards, err, tt.total, tt.want)
			}
		})
	}
}

// EC2 has judged an attachment without a card by all cards' indexes
// (github.com/cilium/cilium/pull/42512).
func TestAnAttachmentNamesTheFirstNetworkCardToo(t *testing.T) {
	c, ec2 := newCanned(t, engine.Options{})
	ec2.says("AttachNetworkInterface", "<AttachNetworkInterfaceResponse><attachmentId>eni-attach-1</attachmentId></AttachNetworkInterfaceResponse>")
	for card, want := range []string{"0", "1"} {
		_, err := c.d.Attach(t.Context(), driver.Attach{ID: "eni-1", Instance: "i-1", Index: 1, Card: card})
		must(t, err)
		if got := ec2.asked[card].Get("NetworkCardIndex"); got != want {
			t.Errorf("an ENI for card %d goes to card %q", card, got)
		}
	}
}

// Where EC2 does not tell of types the built-in table does, of all or of none: half an answer
// would tell of the rest that there is no such type.
func TestTypesThatEC2DoesNotTellOfAreThoseOfTheTable(t *testing.T) {
	s := newSite(t, kind{})
	d := New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata("i-1"))})
	quicken(d)
	s.Endpoint.Allow([]string{"ec2:DescribeSubnets"})
	shapes, err := d.Shapes(t.Context(), []string{"m5.large", "t3.nano"})
	must(t, err)
	if one := shapes["t3.nano"]; len(shapes) != 2 || one.ENIs != 2 || one.V4 != 2 || one.Builtin == nil {
		t.Errorf("the table tells %+v", shapes)
	}
	if shapes, err := d.Shapes(t.Context(), []string{"m5.large", "z9.nothing"}); !errors.Is(err, cloud.ErrForbidden) || len(shapes) > 0 {
		t.Errorf("of a type that the table lacks it tells %+v, %v", shapes, err)
	}
}
