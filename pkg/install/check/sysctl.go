package check

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/install"
)

// checkSysctls reports the settings that pods need. The agent sets them, so only what it can't set is
// wrong.
func checkSysctls(needs Needs) []install.Line {
	read := func(key string) string {
		value, _ := os.ReadFile("/proc/sys/net/" + key) // "" where there is no such key
		return strings.TrimSpace(string(value))
	}
	lines := []install.Line{describeForwarding("net.ipv4.ip_forward", read("ipv4/ip_forward"))}
	if !needs.ipv6() {
		return lines
	}
	if read("ipv6/conf/all/disable_ipv6") != "0" {
		return append(lines, install.Linef(install.MustFix, "IPv6 is off on this node: set net.ipv6.conf.all.disable_ipv6 to 0, and boot without ipv6.disable=1"))
	}
	return append(lines, describeForwarding("net.ipv6.conf.all.forwarding", read("ipv6/conf/all/forwarding")))
}

func describeForwarding(key, value string) install.Line {
	if value == "1" {
		return okLine("%s is 1", key)
	}
	return okLine("%s is %s; the agent sets it to 1", key, value)
}

// findOverrides finds settings in files that are read after enipool's and undo those.
func findOverrides(tree install.Tree, needs Needs) []install.Line {
	i := slices.IndexFunc(needs.System, func(f install.SystemFile) bool { return filepath.Dir(f.Path) == install.SysctlDir })
	if i < 0 {
		return nil
	}
	ours := needs.System[i]
	files := []string{"/etc/sysctl.conf"} // which `sysctl --system` reads last
	for _, dir := range []string{install.SysctlDir, "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"} {
		at, err := tree.Target(dir)
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(at) // most nodes lack some
		for _, entry := range entries {
			if filepath.Ext(entry.Name()) == ".conf" && entry.Name() > filepath.Base(ours.Path) {
				files = append(files, filepath.Join(dir, entry.Name()))
			}
		}
	}
	wanted := parseSysctls([]byte(ours.Text))
	var lines []install.Line
	for _, path := range files {
		at, err := tree.Target(path)
		if err != nil {
			continue
		}
		text, _ := os.ReadFile(at)
		for key, value := range parseSysctls(text) {
			if want, known := wanted[key]; known && want != value {
				lines = append(lines, install.Linef(install.Warning, "%s sets %s to %s after %s has set it to %s; take it out there", path, key, value, ours.Path, want))
			}
		}
	}
	slices.SortFunc(lines, func(a, b install.Line) int { return strings.Compare(a.Text, b.Text) })
	return slices.Compact(lines)
}

// parseSysctls reads a file of sysctl.d: the last value of each key, with dots.
func parseSysctls(text []byte) map[string]string {
	list := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		key, value, isSetting := strings.Cut(strings.TrimSpace(s.Text()), "=")
		if !isSetting || strings.HasPrefix(key, "#") || strings.HasPrefix(key, ";") {
			continue
		}
		key = strings.TrimPrefix(strings.TrimSpace(key), "-")
		list[strings.ReplaceAll(key, "/", ".")] = strings.TrimSpace(value)
	}
	return list
}
