package host

import (
	"os"
	"path/filepath"
)

// NICService is a program that gives a node's links every address of their ENIs.
type NICService struct {
	Name  string
	signs []string // files of which one is there with it, as patterns
	Todo  string   // what keeps it from that
}

// knownServices are those that are known to do so.
var knownServices = [...]NICService{
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

// NICServices returns the known services of which there is a sign below one of the
// roots: a container has the node's files elsewhere, if at all.
func NICServices(roots ...string) []NICService {
	var found []NICService
	for _, s := range knownServices {
		if s.isBelow(roots) {
			found = append(found, s)
		}
	}
	return found
}

func (s NICService) isBelow(roots []string) bool {
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
