// Package fastpath lets packets of established connections pass the node past
// netfilter: a bpf program at the links of pods and ENIs sends them straight to
// where the kernel's routing tables lead, when conntrack knows their connection as
// one that nobody translates. DESIGN.md says what it promises and how it keeps that.
package fastpath
