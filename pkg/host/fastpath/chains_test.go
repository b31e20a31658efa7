package fastpath

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// kubeServices writes what kube-proxy has in iptables mode for n services of one
// endpoint each: two chains and five rules of table nat per service, and for every
// tenth, which has no endpoint, a rule of table filter.
func kubeServices(t testing.TB, n int) {
	t.Helper()
	var nat, rules, filter strings.Builder
	nat.WriteString("*nat\n:PREROUTING ACCEPT\n:KUBE-SERVICES -\n:KUBE-MARK-MASQ -\n")
	rules.WriteString("-A PREROUTING -j KUBE-SERVICES\n-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000\n")
	filter.WriteString("*filter\n:FORWARD ACCEPT\n:KUBE-FORWARD -\n:KUBE-SERVICES -\n" +
		"-A FORWARD -j KUBE-FORWARD\n-A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES\n" +
		"-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n")
	for i := range n {
		service, pod := fmt.Sprintf("10.96.%d.%d", i/250, i%250+1), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		svc, sep := fmt.Sprintf("KUBE-SVC-%016X", i), fmt.Sprintf("KUBE-SEP-%016X", i)
		fmt.Fprintf(&nat, ":%s -\n:%s -\n", svc, sep)
		fmt.Fprintf(&rules, "-A KUBE-SERVICES -d %s/32 -p tcp -m comment --comment web -m tcp --dport 80 -j %s\n", service, svc)
		fmt.Fprintf(&rules, "-A %s ! -s 10.0.0.0/16 -d %s/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ\n-A %s -j %s\n", svc, service, svc, sep)
		fmt.Fprintf(&rules, "-A %s -s %s/32 -j KUBE-MARK-MASQ\n-A %s -p tcp -m tcp -j DNAT --to-destination %s:80\n", sep, pod, sep, pod)
		if i%10 == 0 {
			fmt.Fprintf(&filter, "-A KUBE-SERVICES -d %s/32 -p tcp -m tcp --dport 81 -j REJECT\n", service)
		}
	}
	restore(t, nat.String()+rules.String()+"COMMIT\n"+filter.String()+"COMMIT\n")
}

func restore(t testing.TB, rules string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	nettest.Run(t, "iptables-nft-restore", file)
	t.Cleanup(func() { nettest.Run(t, "nft", "flush ruleset") })
}

// Of the thousands of chains that kube-proxy has in table nat none is read, nor that
// of new connections in table filter.
func TestChainsThatDoNotMatterAreNotRead(t *testing.T) {
	nettest.Need(t)
	kubeServices(t, 200)
	list, err := readChains()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Table+" "+c.Name+" "+c.Hook)
	}
	if want := []string{"ip filter FORWARD forward", "ip filter KUBE-FORWARD "}; !slices.Equal(names, want) {
		t.Errorf("read %q, want %q", names, want)
	}
}

// allowed writes rules that each let some packets pass, which packets of established
// connections do not get around.
func allowed(t testing.TB, n int) {
	t.Helper()
	rules := "*filter\n:FORWARD ACCEPT\n:ALLOWED -\n-A FORWARD -j ALLOWED\n"
	for i := range n {
		rules += fmt.Sprintf("-A ALLOWED -s 10.%d.%d.0/24 -p tcp -m comment --comment web -m tcp --dport 80 -j ACCEPT\n", i/250, i%250)
	}
	restore(t, rules+"COMMIT\n")
}

// What a comparison costs where others have many rules.
func BenchmarkReadingRulesOfOthers(b *testing.B) {
	nettest.Need(b)
	for _, rules := range []int{0, 2000, 10000} {
		for name, write := range map[string]func(testing.TB, int){
			"of kube-proxy": func(b testing.TB, n int) { kubeServices(b, n/5) },
			"on the way":    allowed,
		} {
			b.Run(fmt.Sprint(rules, " rules ", name), func(b *testing.B) {
				write(b, rules)
				b.ResetTimer()
				for range b.N {
					if _, err := readChains(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
