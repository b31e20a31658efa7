package setup

import (
	"fmt"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/install"
	"golang.org/x/sys/unix"
)

// kernelRelease is what the running kernel calls itself, like 6.8.0-45-generic.
func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// fastPathLines says of a configuration that asks for the fast path whether the kernel
// may be too old for it. Nothing is broken then: packets go the plain way.
func fastPathLines(conf agentconf.Config, release string) []install.Line {
	const major, minor = 6, 10
	var haveMajor, haveMinor int
	if _, err := fmt.Sscanf(release, "%d.%d", &haveMajor, &haveMinor); err != nil || conf.FastPath == agentconf.Off {
		return nil
	}
	if haveMajor > major || haveMajor == major && haveMinor >= minor {
		return nil
	}
	return []install.Line{install.Linef(install.Warning, "fastPath: auto takes Linux %d.%d and this is %s: packets go the plain way, "+
		"unless the distribution has brought it what is missing; `enipoolctl pool show` tells", major, minor, release)}
}
