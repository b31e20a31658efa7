package simulate

import (
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// usualType is a node's type in a cloud if nothing is said of it.
var usualType = map[string]string{"aws": "m5.xlarge", "baidu": "bcc.g5.c4m16"}

// What is played if a cloud is named and nothing else, and for how long.
const (
	usualLoad     = "start"
	untilAllServe = 30 * time.Minute
)

// modes are what is compared where it is asked how long it takes until all pods are
// served.
var modes = []string{"batch", "burstable", "besteffort"}

// settleDefaults decides what one flag leaves open and others tell.
func (f *playFlags) settleDefaults() {
	if f.Cloud == "bce" { // as agent.yaml called it
		f.Cloud = "baidu"
	}
	f.shared = f.Given("cloud")
	if f.shared && !f.Given("trace") && !f.Given("workload") {
		f.load = usualLoad
	}
	if simulate.AtOnce(f.load) && !f.Given("duration") {
		f.duration = untilAllServe
	}
}

// comparedModes are what is compared if nothing else is typed.
func (f *simulateFlags) comparedModes() []string {
	if len(f.compare) == 0 && simulate.AtOnce(f.load) {
		return modes
	}
	return f.compare
}

// callRates returns what calls cost in the cloud, and what passes.
func (f *playFlags) callRates() (r simulate.Rates, err error) {
	switch f.Cloud {
	case "aws":
		r = simulate.EC2()
	case "baidu":
		r = simulate.BCE()
	}
	for _, b := range []struct {
		flag, text string
		describes  bool
		into       *sim.Bucket
	}{{"mutating", f.mutating, false, &r.Mutating}, {"describing", f.describing, true, &r.Describing}} {
		if !f.Given(b.flag) {
			continue
		}
		if *b.into, err = parseBucket(b.text); err != nil {
			return r, fmt.Errorf("--%s %s: %w", b.flag, cli.Spelled(b.text), err)
		}
		r.Level(b.describes) // each kind of request has the limit that was given, in place of its own
	}
	return r, nil
}
