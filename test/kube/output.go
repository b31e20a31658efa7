package kube

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// output runs a command and returns what it printed. Its error holds what it said.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), err, &stderr)
	}
	return stdout.String(), nil
}
