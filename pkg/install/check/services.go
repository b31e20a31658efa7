package check

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/install"
)

// findServices finds what else handles links on this node.
func findServices(tree install.Tree, needs Needs) []install.Line {
	lines := slices.Concat(findCloudSetup(tree), findMissing(tree, needs))
	if len(needs.ENILinks) > 0 {
		return lines
	}
	if who := greedyServices(tree); len(who) > 0 {
		lines = append(lines, install.Linef(install.Warning, "%s may configure the links of new ENIs too, by DHCP and with routes of its own: "+
			`name these links, but not the node's own, like --eni-links "eth[1-9]*"`, strings.Join(who, " and ")))
	}
	return lines
}

// findCloudSetup finds the service that gives a node every address of its ENIs: pods'
// addresses would be the node's own.
func findCloudSetup(tree install.Tree) []install.Line {
	for _, unit := range []string{"/etc/systemd/system/timers.target.wants/nm-cloud-setup.timer",
		"/etc/systemd/system/NetworkManager.service.wants/nm-cloud-setup.service"} {
		if linkExists(tree, unit) {
			return []install.Line{install.Linef(install.MustFix, "nm-cloud-setup is enabled and takes the pods' addresses for the node: "+
				"systemctl disable --now nm-cloud-setup.timer nm-cloud-setup.service, then reboot")}
		}
	}
	return nil
}

// findMissing names the system files that are missing and that install does not write.
func findMissing(tree install.Tree, needs Needs) []install.Line {
	if !needs.Skipped {
		return nil
	}
	var lines []install.Line
	for _, f := range needs.System {
		if f.Text != "" && exists(tree, f.Needs) && !exists(tree, f.Path) {
			lines = append(lines, install.Linef(install.Warning, "%s is missing, and is not written with --no-system-files: it is there %s", f.Path, f.Why))
		}
	}
	return lines
}

// greedyServices names the services that configure every new link, also those that no file of theirs
// names.
func greedyServices(tree install.Tree) []string {
	var who []string
	if exists(tree, install.NetworkManagerDir) {
		who = append(who, "NetworkManager")
	}
	for _, dir := range []string{"/etc", "/run", "/usr/lib", "/lib"} {
		for _, file := range []string{"80-ec2.network", "zz-default.network"} {
			if file = filepath.Join(dir, "systemd/network", file); exists(tree, file) {
				return append(who, "systemd-networkd with "+file)
			}
		}
	}
	return who
}

// OwnLinks returns the links that the node's default routes leave through. Nothing
// is known of a node without one.
func OwnLinks() []string {
	v4, _ := os.ReadFile("/proc/thread-self/net/route") // as good as none
	v6, _ := os.ReadFile("/proc/thread-self/net/ipv6_route")
	var links []string
	for line := range strings.Lines(string(v4)) {
		if f := strings.Fields(line); len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			links = append(links, f[0])
		}
	}
	for line := range strings.Lines(string(v6)) {
		if f := strings.Fields(line); len(f) > 9 && strings.Trim(f[0], "0") == "" && f[1] == "00" && f[9] != "lo" {
			links = append(links, f[9])
		}
	}
	slices.Sort(links)
	return slices.Compact(links)
}

// pattern is what all services read in the same way; they differ in [!x].
var pattern = regexp.MustCompile(`^[a-zA-Z0-9_.*?\[\]-]+$`)

// WrongLinks says what is wrong with patterns of links, "" if nothing is: they must
// not match what connects the node itself.
func WrongLinks(patterns, own []string) string {
	for _, p := range patterns {
		if !pattern.MatchString(p) {
			return strconv.Quote(p) + ": must be a pattern of link names, like eth[1-9]*"
		}
		for _, link := range own {
			if match, err := path.Match(p, link); err != nil || match {
				return p + ": must not match " + link + ", which connects the node itself"
			}
		}
	}
	return ""
}
