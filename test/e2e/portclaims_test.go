package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// addSaying adds pod a with the ports, by a process of its own, and returns what the plugin
// says to people.
func (v *vpc) addSaying(ports ...port) (stderr string) {
	v.t.Helper()
	v.plugin("DEL", "a")
	mappings, err := json.Marshal(ports)
	v.must(err)
	conf := v.n.conf("1.0.0", `"runtimeConfig":{"portMappings":`+string(mappings)+`}`)
	cmd := v.n.cmd(call{command: "ADD", id: "a", netns: v.pods["a"].Path, conf: conf})
	var stdout, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &said
	if err := v.node.Do(cmd.Run); err != nil {
		v.t.Fatalf("ADD: %v\n%s%s", err, &stdout, &said)
	}
	return said.String()
}

// A host port leads to the pod also where a program of the node listens on it, as with the
// portmap plugin, and both who looks at the log and who asks pool check is told.
func TestAHostPortThatAProgramOfTheNodeHasIsTold(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4, eni.IPv6) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			tellAddress(t, v.node, "2222") // the node's sshd
			tellAddress(t, v.pods["a"], "80")
			if seen := query(v.internet, "tcp", "10.0.0.10:2222"); seen != "10.0.0.10" {
				t.Fatalf("before the pod: %s", seen)
			}
			said := v.addSaying(tcp(2222, 80), udp(2222, 80), tcp(8080, 80))
			want := "tcp port 2222 leads to the pod: a program of the node that listens there at :: gets nothing of it any more; `ss -lnp --tcp 'sport = :2222'` names it"
			if strings.Count(said, want) != 1 || strings.Count(said, "\n") != 1 {
				t.Errorf("ADD says %q, want one line with %q", said, want)
			}
			if lines := v.checkNode(); len(lines) != 1 || !strings.HasPrefix(lines[0], "host port of pod a: "+want) {
				t.Errorf("pool check says %q, want %q", lines, want)
			}
			if out := v.node.Run(t, "ss", "-Hlnp", "--tcp", "sport = :2222"); !strings.Contains(out, ":2222") {
				t.Errorf("the command that is told names nobody: %q", out)
			}
			if seen := query(v.internet, "tcp", "10.0.0.10:2222"); seen != v.addr(eni.IPv4, 0).String() {
				t.Errorf("the port leads to %s, want the pod", seen)
			}
			v.plugin("DEL", "a")
			if lines := v.checkNode(); len(lines) > 0 {
				t.Errorf("pool check without the pod: %q", lines)
			}
			if seen := query(v.internet, "tcp", "10.0.0.10:2222"); seen != "10.0.0.10" {
				t.Errorf("after the pod: %s", seen)
			}
		})
	}
}

// An address that the node does not have may come yet: the pod starts, as with the portmap
// plugin, and it is told.
func TestAHostIPThatTheNodeDoesNotHaveIsTold(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			answerAll(t, v.pods["a"], "80")
			said := v.addSaying(tcp(8080, 80).on("10.99.0.1"), tcp(8081, 80).on("10.99.0.1"), tcp(8082, 80).on("10.0.0.20"), tcp(8083, 80).on("127.0.0.1"))
			want := "tcp port 8080 of 10.99.0.1 and 1 more of it: the node does not have this address now"
			if strings.Count(said, want) != 1 || strings.Count(said, "\n") != 1 {
				t.Errorf("ADD says %q, want one line with %q", said, want)
			}
			if lines := v.checkNode(); len(lines) != 1 || !strings.HasPrefix(lines[0], "host port of pod a: "+want) {
				t.Errorf("pool check says %q, want %q", lines, want)
			}
			v.node.Run(t, "ip", "addr", "add", "10.99.0.1/32", "dev", "lo")
			if lines := v.checkNode(); len(lines) > 0 {
				t.Errorf("pool check when the node has the address: %q", lines)
			}
			if seen := query(v.node, "tcp", "10.99.0.1:8080"); seen == "refused" || seen == "timeout" {
				t.Errorf("the port of the new address: %s", seen)
			}
		})
	}
}

// What can never work is refused, as every wrong port mapping; a runtime that names all
// addresses once for each family gets the family that the pod has.
func TestAHostIPOfAFamilyThatThePodLacksIsRefused(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.plugin("DEL", "a")
			before := v.free()
			for _, wrong := range []string{"fd00::1", "::"} {
				err := v.newAttachment(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(9090, 80), tcp(8080, 80).on(wrong)}}).add()
				var e *types.Error
				if !errors.As(err, &e) || e.Code != types.ErrInvalidNetworkConfig || !strings.Contains(e.Msg, "runtimeConfig.portMappings: tcp port 8080 of "+wrong) {
					t.Errorf("%s: error %v, want code 7 with key and value", wrong, err)
				}
				if left := append(v.links("eni"), v.records()...); len(left) != 1 || v.free() != before { // pod b's link
					t.Errorf("%s: left over: %q, %d addresses are free, were %d", wrong, left, v.free(), before)
				}
			}
			answerAll(t, v.pods["a"], "80")
			a := v.newAttachment(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80).on("::"), tcp(8080, 80).on("0.0.0.0")}})
			v.must(a.add())
			v.must(a.check())
			if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != internet4 {
				t.Errorf("all addresses, once for each family: %s", seen)
			}
		})
	}
}

// free is how many addresses a pod can have now.
func (v *vpc) free() (n int) {
	v.t.Helper()
	v.must(v.n.Cache.View(v.t.Context(), func(s *ipam.State) error {
		for _, a := range s.Addresses {
			if a.State == eni.Free {
				n++
			}
		}
		return nil
	}))
	return n
}

// The real portmap plugin, of whatever backend, leads the port of a pod of its own
// elsewhere. One of both gets nothing, and that is told.
func TestAHostPortThatAPodOfThePortmapPluginHasIsTold(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4, eni.IPv6) {
		for backend, by := range map[string]string{
			"iptables": " -t nat, chain CNI-DN-", // behind the name of the tool
			"nftables": "(nftables table ip cni_hostport, chain hostports)",
		} {
			t.Run(name+", portmap by "+backend, func(t *testing.T) {
				v := newVPC(t, s)
				if said := v.addSaying(tcp(8080, 80), tcp(8081, 80).on("10.0.0.20"), udp(8082, 80)); said != "" {
					t.Errorf("without portmap: ADD says %q", said)
				}
				v.portmap("ADD", backend, "10.88.0.5/16", tcp(8080, 80), tcp(8082, 82), tcp(8081, 80).on("10.0.0.10"))
				lines := v.checkNode()
				if len(lines) != 1 || !strings.HasPrefix(lines[0], "host port of pod a: tcp port 8080: the portmap plugin (") || !strings.Contains(lines[0], by) || !strings.Contains(lines[0], " leads it to 10.88.0.5:80, and only one of both gets its packets") {
					t.Errorf("pool check says %q, want the one port and who has it", lines)
				}
				v.portmap("DEL", backend, "10.88.0.5/16", tcp(8080, 80))
				v.portmap("ADD", backend, "fd88::5/64", tcp(8080, 80), udp(8082, 82).on("2001:db8::10"))
				if lines := v.checkNode(); len(lines) != 2 || !strings.Contains(lines[0]+lines[1], "leads it to [fd88::5]:80") || !strings.Contains(lines[0]+lines[1], "udp port 8082: the portmap plugin") {
					t.Errorf("IPv6: pool check says %q", lines)
				}
				v.portmap("DEL", backend, "fd88::5/64", tcp(8080, 80))
				if lines := v.checkNode(); len(lines) > 0 {
					t.Errorf("without the other pod: %q", lines)
				}
			})
		}
	}
}

// portmap calls the reference plugin for a pod with an address of another network.
func (v *vpc) portmap(command, backend, addr string, ports ...port) {
	v.t.Helper()
	mappings, err := json.Marshal(ports)
	v.must(err)
	conf := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"others","type":"portmap","snat":true,"backend":%q,"runtimeConfig":{"portMappings":%s},
		"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/run/netns/others"}],"ips":[{"interface":0,"address":%q}]}}`, backend, mappings, addr)
	cmd := exec.Command(filepath.Join(binDir(v.t), "cni", "portmap"))
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID=others", "CNI_NETNS=/run/netns/others", "CNI_IFNAME=eth0", "CNI_PATH=/")
	cmd.Stdin = strings.NewReader(conf)
	v.run(cmd)
}
