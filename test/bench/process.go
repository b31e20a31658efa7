package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a whole process to be timed from outside.
type process struct {
	path  string
	args  []string
	env   []string
	stdin string
}

// attach is a CNI call of a plugin for one interface of a pod.
func (p programs) attach(plugin, command, container, ifName string, pod space, conf string) process {
	return process{path: p.path(plugin), stdin: conf, env: []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=" + pod.Path(),
		"CNI_IFNAME=" + ifName, "CNI_PATH=" + string(p), "PATH=" + os.Getenv("PATH")}}
}

// run starts the process, waits for its end and returns how many milliseconds
// lie between, and its standard output. Files stand for the runtime's pipes:
// they are the same for all, and no goroutine has to keep them moving.
func (p process) run() (ms float64, out []byte, err error) {
	in, err := spool(p.stdin)
	if err != nil {
		return 0, nil, err
	}
	defer in.Close()
	answer, err := spool("")
	if err != nil {
		return 0, nil, err
	}
	defer answer.Close()
	failure, err := spool("")
	if err != nil {
		return 0, nil, err
	}
	defer failure.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.env, in, answer, failure
	start := time.Now()
	err = cmd.Run()
	ms = time.Since(start).Seconds() * 1000
	out = whole(answer)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s %s: %w: %s%s", p.path, strings.Join(p.args, " "), strings.Join(p.env, " "), err, out, whole(failure))
	}
	return ms, out, nil
}

func whole(f *os.File) []byte {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	return text
}

// spool returns a file without a name that holds text, open at its start.
func spool(text string) (*os.File, error) {
	f, err := os.CreateTemp("", "bench")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	if _, err := f.WriteString(text); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, 0)
	return f, err
}
