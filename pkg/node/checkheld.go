package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// checkHeld returns a line for each address that others hold, or claim beside a pod of
// ours, and for each that the book calls held though it is not any more.
func (n Node) checkHeld(ctx context.Context, o netconf.Occupancy) ([]string, error) {
	var lines []string
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		lines = nil
		causes, gone := o.Held(s), setOf(o.LetGo(s))
		services := nicServices("/", "/host")
		for _, a := range s.Addresses {
			cause, held := causes[a.Addr]
			switch {
			case held && a.State != eni.Used:
				lines = append(lines, n.heldLine(a, cause, services))
			case gone[a.Addr]:
				lines = append(lines, fmt.Sprintf("%s was held by others and is no more", a.Addr)+n.remedy("`enipoolctl pool load` takes it back"))
			}
		}
		for _, line := range o.Shared(s) {
			lines = append(lines, line+"; one of the two has no traffic: delete the pod, it gets another address")
		}
		return nil
	})
	return lines, err
}

func setOf(addrs []netip.Addr) map[netip.Addr]bool {
	set := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		set[a] = true
	}
	return set
}

// heldLine says what holds the address and what to do about it.
func (n Node) heldLine(a eni.Address, cause string, services []nicService) string {
	todo := "no pod gets it until that is gone: drain the pods of the plugin that made it, or remove it if it is left over"
	what := ""
	if strings.HasPrefix(cause, netconf.NodeAddress) {
		// Whoever put it there puts it there again.
		what, todo = "must fix: ", "no service of the node may put pods' addresses on its links"
		for _, s := range services {
			todo += fmt.Sprintf("; %s is here: %s", s.name, s.todo)
		}
		todo += "; then `ip " + strings.Replace(cause, "address", "address del", 1) + "`"
	}
	if a.State != eni.Held {
		todo += " (the node cache calls it " + a.State.String() + n.remedy("`enipoolctl pool load` notes it") + ")"
	}
	return fmt.Sprintf("%s%s is held by others: %s; %s", what, a.Addr, cause, todo)
}

// nicService is a program that gives a node's links every address of their ENIs.
type nicService struct {
	name  string
	signs []string // files of which one is there with it, as patterns
	todo  string
}

// knownServices are those that are known to do so.
var knownServices = [...]nicService{
	{"amazon-ec2-net-utils", []string{"usr/lib/systemd/system/policy-routes@.service", "usr/lib/udev/rules.d/99-vpc-policy-routes.rules", "etc/sysconfig/network-scripts/ec2net-functions"},
		"remove that package, or mask policy-routes@LINK.service and refresh-policy-routes@LINK.timer"},
	{"cloud-init", []string{"etc/netplan/50-cloud-init.yaml", "etc/network/interfaces.d/50-cloud-init*", "etc/systemd/network/10-cloud-init-*.network"},
		"write `network: {config: disabled}` into /etc/cloud/cloud.cfg.d/99-enipool.cfg, and take the addresses out of the file that it wrote"},
	{"nm-cloud-setup", []string{"etc/systemd/system/timers.target.wants/nm-cloud-setup.timer", "etc/systemd/system/NetworkManager.service.wants/nm-cloud-setup.service"},
		"systemctl disable --now nm-cloud-setup.timer nm-cloud-setup.service"},
	{"waagent", []string{"usr/sbin/waagent", "usr/lib/systemd/system/walinuxagent.service", "usr/lib/systemd/system/waagent.service"},
		"let it and cloud-init configure the primary address alone"},
	{"google-guest-agent", []string{"usr/lib/systemd/system/google-guest-agent.service"},
		"set ip_forwarding = false in the section IpForwarding of /etc/default/instance_configs.cfg"},
}

// nicServices returns the known services of which there is a sign below one of the
// roots: a container has the node's files elsewhere, if at all.
func nicServices(roots ...string) []nicService {
	var found []nicService
	for _, s := range knownServices {
		if s.isBelow(roots) {
			found = append(found, s)
		}
	}
	return found
}

func (s nicService) isBelow(roots []string) bool {
	for _, root := range roots {
		for _, sign := range s.signs {
			paths, _ := filepath.Glob(filepath.Join(root, sign)) // the patterns are sound
			for _, path := range paths {
				// An enabled unit is a link that may lead nowhere from here.
				if _, err := os.Lstat(path); err == nil {
					return true
				}
			}
		}
	}
	return false
}
