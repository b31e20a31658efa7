package vpc

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// execOn replaces this program by one in a node's network.
func execOn(at *place, node string, command []string) error {
	told, is, err := at.serving()
	switch {
	case err != nil:
		return err
	case !is:
		return fmt.Errorf("no VPC is served in %s: `enipoolctl vpc serve` makes one", at.folder)
	case !slices.Contains(told.Nodes, node):
		return fmt.Errorf("the VPC has no node %s; it has %s", node, strings.Join(told.Nodes, ", "))
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("enter the network of %s: %w; the package util-linux has it", node, err)
	}
	argv, err := told.commandOn(node)
	if err != nil {
		return err
	}
	env := append(os.Environ(), "ENIPOOL_CACHE="+at.cachePath(node))
	err = syscall.Exec(nsenter, append(argv, command...), env)
	return fmt.Errorf("run %s: %w", nsenter, err)
}

// commandOn returns the command line that enters a node's network, and the server's sandbox before that. A program's own mounts, which
// `ip netns exec` makes, would hide the namespaces that are made in it.
func (told served) commandOn(node string) ([]string, error) {
	net := "--net=" + told.namespace(node).Path()
	if !told.Sandbox {
		return []string{"nsenter", net, "--"}, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return []string{"nsenter", "--target", strconv.Itoa(told.PID), "--user", "--preserve-credentials", "--mount", "--wdns=" + here, "--",
		"nsenter", net, "--"}, nil
}
