package e2e

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// eachFilter runs the test with each packet filter, IPv4 only.
func eachFilter(t *testing.T, test func(t *testing.T, v *vpc)) {
	for name, s := range map[string]ipam.Settings{"nftables": {}, "iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables}} {
		t.Run(name, func(t *testing.T) {
			s.Families = []eni.Family{eni.IPv4}
			test(t, newVPC(t, s))
		})
	}
}

// leadsTo wants who answers at the first host port of the tests.
func (v *vpc) leadsTo(when, want string) {
	v.t.Helper()
	if got := query(v.internet, "tcp", "10.0.0.10:8080"); got != want {
		v.t.Errorf("%s the port leads to %s, want %s", when, got, want)
	}
}

// isWhole wants records of so many pods, and nothing that pool check could find.
func (v *vpc) isWhole(when string, records int) {
	v.t.Helper()
	if list := v.records(); len(list) != records {
		v.t.Errorf("%s: records %q, want %d", when, list, records)
	}
	if lines := v.checkNode(); len(lines) > 0 {
		v.t.Errorf("%s: pool check %q", when, lines)
	}
}

// untag makes the link of the pod look as if it had asked for no host port.
func (v *vpc) untag(pod eni.Key) {
	v.t.Helper()
	v.node.Run(v.t, "sh", "-c", "echo 0 >/proc/sys/net/ipv4/conf/"+netconf.HostDevice(pod)+"/tag")
}

func podKey(id string) eni.Key { return eni.Key{Network: "pods", Container: id, IfName: "eth0"} }

// addPlain starts a pod that asks for no port and serves on the one that others asked for.
func (v *vpc) addPlain(id string) {
	v.t.Helper()
	v.pods[id] = nettest.NewNetns(v.t, "pod-"+id)
	v.plugin("ADD", id)
	v.t.Cleanup(func() { v.plugin("DEL", id) })
	answerAll(v.t, v.pods[id], "80")
}

// An address is used again. What still leads to it is not the next pod's, who asked for
// nothing: repair closes it, whether the former pod's record is there or not.
func TestTheNextPodWithAnAddressKeepsNoPortOfItsFormerPod(t *testing.T) {
	for _, left := range []string{"its record is left", "its record is lost"} {
		t.Run(left, func(t *testing.T) {
			eachFilter(t, func(t *testing.T, v *vpc) {
				v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
				record := v.record()
				text, err := os.ReadFile(record)
				v.must(err)
				v.must(os.Remove(record))
				v.untag(podKey("a")) // so its DEL does not know of the port
				v.plugin("DEL", "a")
				if left == "its record is left" {
					v.must(os.WriteFile(record, text, 0o600))
				}
				v.addPlain("c")
				v.leadsTo("before the repair", internet4)
				v.reload()
				v.leadsTo("after the repair", "refused")
				v.isWhole("after the repair", 0)
			})
		})
	}
}

// The plugin of the previous release knows no records.
func TestAPortOfAPodThatThePreviousReleaseEndedIsClosed(t *testing.T) {
	plugin := previous(t).plugin
	eachFilter(t, func(t *testing.T, v *vpc) {
		v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
		cmd := v.n.cmd(call{command: "DEL", id: "a", netns: v.pods["a"].Path, conf: v.n.conf("1.0.0")})
		cmd.Path = plugin
		v.run(cmd)
		v.addPlain("c")
		v.reload()
		v.leadsTo("after the repair", "refused")
		v.isWhole("after the repair", 0)
	})
}

// Runtimes need not repeat what a pod asked for, and its sandbox may be gone already.
func TestDELWithoutPortsClosesThoseOfALostRecord(t *testing.T) {
	eachFilter(t, func(t *testing.T, v *vpc) {
		for _, gone := range []bool{false, true} {
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
			v.must(os.Remove(v.record()))
			if gone {
				v.pods["a"].Delete()
				until(t, "link gone", func() bool { return !slices.Contains(v.links("eni"), netconf.HostDevice(podKey("a"))) })
			}
			v.plugin("DEL", "a")
			v.leadsTo("after DEL", "refused")
			v.isWhole("after DEL", 0)
		}
	})
}

// The packet filter holds ports of pods whose records are lost beside those of others, and
// nobody's ADD or DEL takes them away.
func TestAPortOfALostRecordStaysBesideOtherRecords(t *testing.T) {
	for _, why := range slices.Sorted(maps.Keys(unreadable)) {
		t.Run(why, func(t *testing.T) {
			eachFilter(t, func(t *testing.T, v *vpc) {
				v.addAddress("10.0.0.22")
				v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
				answerAll(t, v.pods["a"], "80")
				record := v.record()
				v.replacePod(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(9090, 80)}})
				v.must(unreadable[why](record))
				v.pods["c"] = nettest.NewNetns(t, "pod-c")
				c := v.newAttachment(v.builtIn(), "c", map[string]any{"portMappings": []port{tcp(9091, 80)}})
				v.must(c.add())
				v.leadsTo("after an ADD", internet4)
				v.must(c.del())
				v.leadsTo("after a DEL", internet4)
				v.reload()
				v.leadsTo("after the repair", internet4)
			})
		})
	}
}

// addAddress gives the pool one more.
func (v *vpc) addAddress(text string) {
	v.t.Helper()
	free := eni.Address{Addr: netip.MustParseAddr(text), ENI: 1}
	v.must(v.net.Assign("eni-1", free.Addr))
	inv := v.inv
	inv.Addresses = append(slices.Clone(inv.Addresses), free)
	v.load(inv)
}

// What leads to one network of a pod stays there while its record can't be read: neither a
// repair nor another pod hands it to the network that comes behind.
func TestAPortStaysWithTheFirstNetworkWhoseRecordCannotBeRead(t *testing.T) {
	for _, why := range slices.Sorted(maps.Keys(unreadable)) {
		for _, when := range []string{"before the second network", "after the second network"} {
			t.Run(why+" "+when, func(t *testing.T) {
				eachFilter(t, func(t *testing.T, v *vpc) {
					v.addAddress("10.0.0.22")
					v.plugin("DEL", "a")
					v.plugin("DEL", "b")
					tellAddress(t, v.pods["a"], "80")
					first := addresses(t, v.call("ADD", inPods, sharedPort))[0]
					record := v.record()
					if when == "before the second network" {
						v.must(unreadable[why](record))
					}
					second := addresses(t, v.call("ADD", inStorage, sharedPort))[0]
					v.leadsTo("with both networks", first)
					if when == "after the second network" {
						v.must(unreadable[why](record))
					}
					v.pods["c"] = nettest.NewNetns(t, "pod-c")
					c := v.newAttachment(v.builtIn(), "c", map[string]any{"portMappings": []port{tcp(9091, 80)}})
					v.must(c.add())
					v.leadsTo("after the ADD of another pod", first)
					v.must(c.del())
					v.leadsTo("after the DEL of another pod", first)
					v.reload()
					v.leadsTo("after the repair", first)
					if why != "of a later release" {
						v.isWhole("after the repair", 2)
					}
					v.call("DEL", inPods, sharedPort)
					v.leadsTo("after DEL of the first network", second)
					v.call("DEL", inStorage, sharedPort)
					v.leadsTo("after DEL of both", "refused")
				})
			})
		}
	}
}

// A record says what the kernel does not: who has a port next. The first ones had no "min".
func TestRecordsWithoutMinAreReadAfterAnUpgrade(t *testing.T) {
	eachFilter(t, func(t *testing.T, v *vpc) {
		v.plugin("DEL", "a")
		v.plugin("DEL", "b")
		tellAddress(t, v.pods["a"], "80")
		v.call("ADD", inPods, sharedPort)
		second := addresses(t, v.call("ADD", inStorage, sharedPort))[0]
		for _, name := range v.records() {
			path := filepath.Join(v.n.Cache.Path+".pods", name)
			text, err := os.ReadFile(path)
			v.must(err)
			v.must(os.WriteFile(path, []byte(strings.Replace(string(text), " 1 min 1\n", " 1\n", 1)), 0o600))
		}
		v.reload()
		v.isWhole("after the upgrade", 2)
		v.call("DEL", inPods, sharedPort)
		v.leadsTo("after DEL of the first network", second)
		v.call("DEL", inStorage, sharedPort)
	})
}

// What says that a pod asked for ports is put back from its record while that is there.
func TestTheTagOfAPodWithPortsIsPutBack(t *testing.T) {
	eachFilter(t, func(t *testing.T, v *vpc) {
		v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
		answerAll(t, v.pods["a"], "80")
		v.untag(podKey("a"))
		if all := strings.Join(v.checkNode(), "\n"); !strings.Contains(all, "the link of pod a, which has host ports, lacks their tag") {
			t.Errorf("pool check: %q", all)
		}
		v.reload()
		v.isWhole("after the repair", 1)
		v.must(os.Remove(v.record()))
		v.reload()
		v.leadsTo("after its record was lost", internet4)
		v.isWhole("after its record was lost", 1)
	})
}
