package cloudtest_test

import (
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
)

// The variables by which a test runs itself on a mutant.
const (
	wrongEnv = "CLOUDTEST_WRONG"
	enisEnv  = "CLOUDTEST_ENIS"
	podsEnv  = "CLOUDTEST_PODS"
)

// madeUpSubject is node n1 of a made-up cloud.
func madeUpSubject(l likeness) cloudtest.Subject {
	m := newMadeUp(l)
	s := cloudtest.Subject{Cloud: instance{m, "n1"}, Other: instance{m, "n2"}, Inject: m.inject, Leave: m.leave, Detach: m.detach, Move: m.move}
	if l.enis > 1 {
		s.Subnets = []string{"the-subnet"}
	}
	if l.pods != madeUpSubnet {
		s.Pods = []netip.Prefix{netip.MustParsePrefix(l.pods)}
	}
	return s
}

func TestCloudsWithFewENIs(t *testing.T) {
	for _, enis := range []int{1, 2, 3} {
		t.Run(strconv.Itoa(enis), func(t *testing.T) {
			cloudtest.Contract(t, func(*testing.T) cloudtest.Subject { return madeUpSubject(likeness{enis: enis, pods: madeUpSubnet}) })
		})
	}
}

func TestCloudsWhosePodsHaveARangeOfTheirOwn(t *testing.T) {
	for _, enis := range []int{1, 2, 4} {
		t.Run(strconv.Itoa(enis), func(t *testing.T) {
			cloudtest.Contract(t, func(*testing.T) cloudtest.Subject { return madeUpSubject(likeness{enis: enis, pods: ownRange}) })
		})
	}
}

// TestMutant is the suite on a cloud that breaks a sentence: TestTheSuiteFindsMutants
// runs it.
func TestMutant(t *testing.T) {
	l := likeness{wrong: os.Getenv(wrongEnv), pods: os.Getenv(podsEnv)}
	if l.wrong == "" {
		t.Skip("there is no mutant to run")
	}
	var err error
	if l.enis, err = strconv.Atoi(os.Getenv(enisEnv)); err != nil {
		t.Fatal(err)
	}
	cloudtest.Contract(t, func(*testing.T) cloudtest.Subject {
		s := madeUpSubject(l)
		if l.wrong == lacksIPv6 {
			s.Must = []cloudtest.Capability{cloudtest.DualStack}
		}
		return s
	})
}

// lacksIPv6 is no mutant: IPv6 was asked for, and is not to be missing in silence.
const lacksIPv6 = "has no IPv6"

// Each mutant fails, by the sentence that it breaks.
func TestTheSuiteFindsMutants(t *testing.T) {
	one, own, ownOfTwo, two := likeness{enis: 1, pods: madeUpSubnet}, likeness{enis: 1, pods: ownRange}, likeness{enis: 2, pods: ownRange}, likeness{enis: 2, pods: madeUpSubnet}
	for wrong, m := range map[string]struct {
		likeness
		sentence string
	}{
		"says forbidden where no ENI fits":        {one, "Limits returns how many ENIs the instance may carry"},
		"leaves the ENI that does not fit":        {one, "Limits returns how many ENIs the instance may carry"},
		"makes an ENI beyond its limits":          {one, "Limits returns how many ENIs the instance may carry"},
		"knows no limit":                          {one, "Limits returns how many addresses an ENI may carry"},
		"does what it says it could not":          {one, "after ErrUnavailable nothing has happened"},
		"assigns again after a lost answer":       {one, "after ErrUnknown a call may have had its effect and Interfaces tells"},
		"shows addresses unsorted":                {one, "an Interface has the fields that its comments promise"},
		"changes other nodes' ENIs":               {two, "AssignAddresses and UnassignAddresses change no ENI that another node has by now"},
		"shows other nodes' ENIs":                 {one, "a cloud acts for one node"},
		"knows nothing without asking":            {one, "Known returns what the last Interfaces did"},
		"knows nothing of its calls":              {one, "what calls have done is shown at once, whatever describes lag"},
		"returns all that the ENI has":            {one, "AssignAddresses puts up to n more addresses on the ENI and returns those"},
		"refuses what is gone already":            {one, "UnassignAddresses is safe to ask again after an error"},
		"takes one at a time":                     {one, "UnassignAddresses takes secondary addresses from the ENI"},
		lacksIPv6:                                 {one, "a cloud acts for one node"},
		"says that it deletes the node's own ENI": {one, "DeleteInterface refuses an ENI that CreateInterface did not make"},

		"takes pods' addresses from the primary's subnet": {own, "an Interface has the fields that its comments promise"},
		"tells what is free beside the pods' range":       {own, "Free is what is left in a subnet"},
		"counts primaries where pods' addresses are":      {ownOfTwo, "Free is what is left in a subnet"},
	} {
		t.Run(wrong, func(t *testing.T) {
			m.wrong = wrong
			if got := brokenBy(t, m.likeness); !slices.Contains(got, m.sentence) {
				t.Errorf("the suite finds %q, not %q", got, m.sentence)
			}
		})
	}
}

// brokenBy runs the suite on a mutant in a process of its own, since a test that is to fail
// can't be a part of one that is to pass, and returns the sentences that fail.
func brokenBy(t *testing.T, l likeness) (sentences []string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestMutant$")
	c.Env = append(os.Environ(), wrongEnv+"="+l.wrong, podsEnv+"="+l.pods, enisEnv+"="+strconv.Itoa(l.enis))
	out, err := c.CombinedOutput()
	if err == nil {
		t.Fatalf("the suite passes:\n%s", out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if _, name, found := strings.Cut(line, "--- FAIL: TestMutant/"); found {
			name, _, _ = strings.Cut(name, " (")
			sentences = append(sentences, strings.ReplaceAll(name, "_", " "))
		}
	}
	return sentences
}
