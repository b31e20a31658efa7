package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// tagged is what git describe says at or after the tag of a release.
var tagged = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`)

// chartVersion makes of a release the version of the chart, which Helm wants to be a semantic one. What comes after v1.2.3 is newer than
// that and older than 1.2.4; where there is no release yet a commit is older than any.
func chartVersion(release string) string {
	m := tagged.FindStringSubmatch(release)
	if m == nil {
		return "0.0.0-" + regexp.MustCompile(`[^0-9A-Za-z-]+`).ReplaceAllString("g"+release, "-") // a number may not begin with 0
	}
	if m[4] == "" && m[6] == "" {
		return fmt.Sprintf("%s.%s.%s", m[1], m[2], m[3])
	}
	patch, _ := strconv.Atoi(m[3]) // digits, as the expression says
	later := "0.0"
	if m[4] != "" {
		later = "0." + m[4] + "." + m[5]
	}
	return fmt.Sprintf("%s.%s.%d-%s%s", m[1], m[2], patch+1, later, m[6])
}
