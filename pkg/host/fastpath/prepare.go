package fastpath

import (
	"fmt"
	"os"
	"strings"
)

// liberal has conntrack go on to know TCP connections of which it has not seen
// every packet. Without it the first packet that goes the plain way after many
// that jumped, the end of the connection at the latest, would be invalid, and
// kube-proxy drops those.
const liberal = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal"

// Prepare sets what conntrack needs to live with packets that it does not see, if it
// is not set, and tells whether it was not. It stays set when the fast path goes:
// connections that used it live on.
func Prepare() (changed bool, err error) {
	text, err := os.ReadFile(liberal)
	if err == nil && strings.TrimSpace(string(text)) != "0" {
		return false, nil
	}
	if err == nil {
		err = writeSysctl(liberal, "1")
	}
	if err != nil {
		return false, fmt.Errorf("have conntrack be liberal: %w", err)
	}
	return true, nil
}

// writeSysctl writes by the path, or where the node's settings are mounted beside
// those of a container that may not.
func writeSysctl(path, value string) error {
	err := os.WriteFile(path, []byte(value), 0)
	if err != nil {
		if beside := os.WriteFile("/host"+path, []byte(value), 0); beside == nil {
			return nil
		}
	}
	return err
}
