package agent

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// previewSettings returns the cache as it is with the settings of the configuration, and a
// line for each that changes: the next tick takes them over before all else.
func (a *Agent) previewSettings(cached *ipam.State) (*ipam.State, []string) {
	want := a.settings()
	if sameSettings(cached.Settings, want) {
		return cached, nil
	}
	next := cached.Clone()
	next.Settings = want
	return next, settingChanges(cached.Settings, want)
}

// settingChanges returns a line for each setting that differs.
func settingChanges(have, want ipam.Settings) (lines []string) {
	for _, s := range []struct{ name, is, will string }{
		{"families", fmt.Sprint(have.Families), fmt.Sprint(want.Families)},
		{"vpcCIDRs", fmt.Sprint(have.VPC), fmt.Sprint(want.VPC)},
		{"snat", fmt.Sprint(have.SNAT), fmt.Sprint(want.SNAT)},
		{"routing", have.Routing.String(), want.Routing.String()},
		{"firewall", have.Firewall.String(), want.Firewall.String()},
		{"markMask", fmt.Sprintf("%#08x", have.MarkMask), fmt.Sprintf("%#08x", want.MarkMask)},
		{"coolDown", have.CoolDown.String(), want.CoolDown.String()},
		{"gated namespaces", fmt.Sprintf("%q", have.Gated), fmt.Sprintf("%q", want.Gated)},
		{"prefixes", fmt.Sprint(have.V4Block, " ", have.V6Block), fmt.Sprint(want.V4Block, " ", want.V6Block)},
	} {
		if s.is != s.will {
			lines = append(lines, fmt.Sprintf("change %s from %s to %s: the configuration says so", s.name, s.is, s.will))
		}
	}
	if have.PodsInMain && !want.PodsInMain {
		lines = append(lines, "move pods' routes from the main routing table to one of their own: an earlier release put them there")
	}
	return lines
}

// outsideVPC tells what is wrong with the VPC's ranges, "" if nothing is or nobody knows.
func (a *Agent) outsideVPC(enis []eni.Interface) string {
	return ipam.OutsideVPC(a.conf.Settings, enis)
}

// tellOutsideVPC logs it once.
func (a *Agent) tellOutsideVPC() {
	said := a.wrongVPC
	if a.wrongVPC = ""; a.cached != nil {
		a.wrongVPC = a.outsideVPC(a.cached.ENIs)
	}
	if a.wrongVPC != "" && a.wrongVPC != said {
		a.Log.Error("configuration can't be meant", "error", a.wrongVPC)
	}
}
