package netconf

import (
	"fmt"
	"strings"
)

// MarkUser is a program that uses bits of packet or connection marks on nodes.
type MarkUser struct {
	Name string
	Mask uint32
	Does string // what it does with packets that carry a bit of it which it did not set
}

// MarkUsers returns whose bits are whose by default. Of the 32 bits they leave one
// byte free, which is ours: 0x000000ff. (In that byte aws-vpc-cni has 0x80, which
// says that a connection belongs to the primary ENI. Ours never has 0x80 alone, says
// the same with all eight bits, and leaves 0x80 alone where it stands.)
func MarkUsers() []MarkUser {
	return []MarkUser{
		{"kube-proxy", 0x0000c000, "masquerades them or drops them"},
		{"portmap", 0x00002000, "masquerades them"},
		{"Cilium", 0xffff0f00, "takes them for proxied, encrypted or of another identity"},
		{"Calico", 0xffff0000, "accepts them, drops them or passes policies over"},
		{"Tailscale", 0x00ff0000, "masquerades them or routes them past its tunnel"},
	}
}

// MaskConflicts returns a line for each program whose bits the mask has.
func MaskConflicts(mask uint32) []string {
	var lines []string
	for _, u := range MarkUsers() {
		if shared := mask & u.Mask; shared != 0 {
			lines = append(lines, fmt.Sprintf("markMask %#08x shares the bits %#08x with %s, which uses %#08x: %[3]s %[5]s", mask, shared, u.Name, u.Mask, u.Does))
		}
	}
	return lines
}

// MaskWarning is MaskConflicts in one sentence with what to do, "" if there is none.
func MaskWarning(mask uint32) string {
	lines := MaskConflicts(mask)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "; ") + "; if it runs on this node, remove markMask from the configuration (the default is nobody else's) or give that program another mask"
}
