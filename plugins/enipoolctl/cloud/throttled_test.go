package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// simulated is a simulated account that answers on loopback, with the file of an agent that
// uses it.
func simulated(t *testing.T) (a *sim.Account, conf string) {
	t.Helper()
	a = sim.NewAccount(sim.Options{})
	a.AddType(sim.Type{Name: "small", ENIs: 3, V4: 10})
	err := a.AddSubnet(sim.Subnet{ID: "subnet-a", V4: netip.MustParsePrefix("10.0.0.0/24")})
	if err == nil {
		_, err = a.AddInstance(sim.Instance{ID: "n1", Type: "small", Subnet: "subnet-a"})
	}
	if err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(a.Handler())
	t.Cleanup(api.Close)
	conf = filepath.Join(t.TempDir(), "agent.yaml")
	text := fmt.Appendf(nil, "node: n1\nvpcCIDRs: [10.0.0.0/16]\ncloud:\n  provider: sim\n  endpoint: %s\n  subnets: [subnet-a]\n", api.URL)
	if err := os.WriteFile(conf, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return a, conf
}

// What the cloud had no time for is no finding that all is well: the exit code and the last
// line say so, also where a program reads the rest.
func TestCheckThatIsThrottledIsNoCheckThatFoundAllWell(t *testing.T) {
	for name, tt := range map[string]struct {
		action     string
		before     int // calls of it that are answered
		retryAfter time.Duration
		found      string
		last       string
	}{
		"at once":             {sim.ActDescribe, 0, 0, "credentials", "credentials, limits, subnets, permissions. Run this again in 60 s."},
		"by the first subnet": {sim.ActSubnets, 0, 0, "credentials", "credentials, limits, subnets, permissions. Run this again in 60 s."},
		"of subnets":          {sim.ActSubnets, 1, 0, "subnets", "subnets. Run this again in 60 s."},
		"of limits":           {sim.ActShape, 0, 0, "limits", "limits. Run this again in 60 s."},
		"as the cloud says":   {sim.ActShape, 0, 89500 * time.Millisecond, "limits", "limits. Run this again in 90 s."},
	} {
		t.Run(name, func(t *testing.T) {
			a, conf := simulated(t)
			refused := sim.Fault{Err: &sim.Error{Reason: sim.Throttled, RetryAfter: tt.retryAfter}}
			check := func(more ...string) (code int, text string) {
				a.FailNext(tt.action, append(make([]sim.Fault, tt.before), refused)...)
				var out, said bytes.Buffer
				code = cli.Run(t.Context(), Command(), append([]string{"check", "--config", conf}, more...), &out, &said)
				if said.Len() > 0 {
					t.Errorf("%v: %s", more, &said)
				}
				return code, out.String()
			}
			tt.last = "Not checked, for the account has made too many calls: " + tt.last
			code, text := check("-v")
			lines := strings.Split(strings.TrimSpace(text), "\n")
			if last := lines[len(lines)-1]; code != 2 || last != tt.last {
				t.Errorf("exit %d, want 2; the last line is %q, want %q, of\n%s", code, last, tt.last, text)
			}
			code, text = check("-o", "json")
			var answer struct {
				Findings []struct {
					What, Verdict string
					TryAgain      int `json:"tryAgainSeconds"`
				}
			}
			if err := json.Unmarshal([]byte(text), &answer); err != nil || code != 2 {
				t.Fatalf("exit %d, want 2: %v\n%s", code, err, text)
			}
			seen := false
			for _, f := range answer.Findings {
				if f.What == tt.found {
					seen = f.Verdict == "unasked" && f.TryAgain >= 60
				}
			}
			if !seen {
				t.Errorf("no %q that is unasked, with a time, in\n%s", tt.found, text)
			}
		})
	}
}
