package kube

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Images that every node has; the second one is busybox with all its commands.
const (
	PauseImage   = "localhost/pause:1"
	BusyboxImage = "localhost/busybox:1"
)

// PauseProgram builds the program of PauseImage and returns its path, beside the
// folder of Kubernetes.
var PauseProgram = sync.OnceValues(func() (string, error) {
	bin, err := Assets()
	if err != nil {
		return "", err
	}
	root, err := root()
	if err != nil {
		return "", err
	}
	file := filepath.Join(filepath.Dir(bin), "pause")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", file, "./test/kube/pause")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(cmd); err != nil {
		return "", fmt.Errorf("build pause: %w", err)
	}
	return file, nil
})

// writeStock writes to a node's folder what every node has: the program pause, and
// the images pause.tar and busybox.tar.
func writeStock(dir string) error {
	program, err := PauseProgram()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	shell, err := Busybox()
	if err != nil {
		return err
	}
	pause := Image{Ref: PauseImage, Files: map[string]string{"/pause": program}, Command: []string{"/pause"}}
	return errors.Join(os.WriteFile(filepath.Join(dir, "pause"), text, 0o755),
		pause.Write(filepath.Join(dir, "pause.tar")), shell.Write(filepath.Join(dir, "busybox.tar")))
}

// Busybox is an image with a shell and the other commands of this machine's busybox.
func Busybox() (Image, error) {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return Image{}, err
	}
	commands, err := output(exec.Command(program, "--list"))
	if err != nil {
		return Image{}, err
	}
	image := Image{Ref: BusyboxImage, Files: map[string]string{"/bin/busybox": program}, Links: map[string]string{}}
	for name := range strings.FieldsSeq(commands) {
		if name != "busybox" {
			image.Links["/bin/"+name] = "busybox"
		}
	}
	return image, nil
}
