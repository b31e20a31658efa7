package cni

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// The specification's types read a null in a list as an entry that is not there. A plugin
// that uses it dies without an error object.
func TestAPrevResultWithNullsIsRefusedAndDelWorks(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	ns := nettest.NewNetns(t, "a")
	l.mustAdd("a", ns.Path, plain)
	at := func(version, prev string) string {
		return `{"cniVersion":"` + version + `","name":"pods","type":"enipool","prevResult":` + prev + `}`
	}
	linked := `{"name":"eth0","sandbox":"` + ns.Path + `"}`
	for list, prev := range map[string]string{
		"interfaces": `{"interfaces":[` + linked + `,null],"ips":[null]}`,
		"ips":        `{"interfaces":[` + linked + `],"ips":[null]}`,
		"routes":     `{"interfaces":[` + linked + `],"Routes":[null]}`,
	} {
		for _, version := range []string{"0.4.0", "1.0.0", "1.1.0"} {
			want := "a result of version " + version + ": " + list + " has an entry that is null"
			for call, do := range map[string]func() error{
				"CHECK": func() error { return checkAs(l, "a", ns.Path, at(version, prev)) },
				"ADD":   func() error { _, err := l.add("b", ns.Path, at(version, prev)); return err },
			} {
				if err := do(); err == nil || Error(err).Code != 7 || !strings.Contains(err.Error(), want) {
					t.Errorf("%s with %s: %v, want code 7 and %q", call, prev, err, want)
				}
			}
		}
	}
	l.mustDel("a", ns.Path, at("1.0.0", `{"interfaces":[null],"ips":[null],"routes":[null]}`))
	if state := l.takenAddresses(); strings.Contains(state, "used") {
		t.Errorf("after DEL:\n%s", state)
	}
}

// checkAs is check with the result that conf names.
func checkAs(l *lab, id, netns, conf string) error {
	r, err := l.request(id, netns, conf, false)
	if err != nil {
		return err
	}
	return l.Check(l.t.Context(), r)
}
