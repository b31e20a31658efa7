package host

import "testing"

func TestWhoKeepsANamespaceIsNamed(t *testing.T) {
	proc := machine(t, map[string]string{"70/comm": "sleep\n", "90/ns/net": "-> net:[4026532009]", "90/comm": "nginx\n",
		"100/ns/net": "-> net:[4026532009]", "100/comm": "worker\n"})
	for inode, want := range map[uint64]string{
		4026532001: "process 70 (sleep) is in it",
		4026532009: "process 90 (nginx) and 1 more are in it",
		4026532003: "it is mounted at /run/docker/netns/x",
		4026532002: nobodySeen,
		0:          nobodySeen,
	} {
		if got := holderIn(proc, inode); got != want {
			t.Errorf("%d: %s, want %s", inode, got, want)
		}
	}
}
