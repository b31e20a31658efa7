package node

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/host/events"
)

// changerStays is how long a process that was found with its parent is told, though later ones were gone before
// they could be found.
const changerStays = 2 * time.Minute

// changers find out who changed nftables objects of enipool. The kernel tells which process it was, at the end of
// a transaction, and that process lives on for about a millisecond where it is an nft of a script: what
// started it can be read then alone.
type changers struct {
	proc    string // where processes are read
	touched bool   // something of enipool was changed, and the kernel has not said yet by whom
	newest  changer
}

// changer is a process that is not this one.
type changer struct {
	text    string // for people, "" for none
	started bool   // the text says what started it, or that it is no short-lived one
	at      time.Duration
}

// Changer tells who changed nftables objects of enipool last, if that was after since, the time since boot. found
// tells that it says where the process comes from, too. "": nobody did, or the kernel does not tell.
func (n Node) Changer(since time.Duration) (text string, found bool) {
	if n.Watch == nil {
		return "", false
	}
	n.Watch.mu.Lock()
	defer n.Watch.mu.Unlock()
	if c := n.Watch.changers.newest; c.at >= since {
		return c.text, c.started
	}
	return "", false
}

// follow takes in a change and what it is to us.
func (c *changers) follow(e events.Event, is concern, now time.Duration) {
	switch {
	case e.Kind == events.Nftables:
		c.touched = c.touched || is == fault
	case e.Kind == events.Generation && c.touched:
		c.touched = false
		pid, name := e.Process()
		if pid == 0 || c.isOwn(pid, name) {
			return
		}
		if found := c.find(pid, name, now); found.started || !c.newest.started || now-c.newest.at > changerStays {
			c.newest = found
		}
	}
}

// isOwn tells whether it is a thread of this process. In a container with PIDs of its own, where the kernel's
// mean nothing, the name has to tell.
func (c *changers) isOwn(pid int, name string) bool {
	if _, err := os.Stat(filepath.Join(c.proc, "self/task", strconv.Itoa(pid))); err == nil {
		return true
	}
	return c.read(pid, "comm") == "" && name == c.readFrom("self/comm")
}

// find says what is known of a process.
func (c *changers) find(pid int, name string, now time.Duration) changer {
	told := changer{text: fmt.Sprintf("%s (process %d)", name, pid), at: now}
	parent := c.parentOf(pid)
	// By another name it is another process, of a container's own PIDs.
	if parent == 0 || c.read(pid, "comm") != name {
		return told
	}
	told.started = true
	if command := commandOf(c.read(parent, "cmdline")); command != "" && parent > 1 {
		told.text += fmt.Sprintf(", started by `%s` (process %d)", command, parent)
	}
	if unit := unitOf(c.read(pid, "cgroup")); unit != "" {
		told.text += ", in cgroup " + unit
	}
	return told
}

func (c *changers) read(pid int, file string) string {
	return c.readFrom(strconv.Itoa(pid) + "/" + file)
}

// readFrom is "" where the process is gone.
func (c *changers) readFrom(file string) string {
	text, _ := os.ReadFile(filepath.Join(c.proc, file))
	return strings.TrimSuffix(string(text), "\n")
}

// parentOf returns the parent of the process, 0 if that can't be seen.
func (c *changers) parentOf(pid int) int {
	text := c.read(pid, "stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name before may have anything in it
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// commandOf returns the program and, as that of a script, its first argument. More may hold secrets, and is
// nobody's to tell.
func commandOf(cmdline string) string {
	words := bytes.SplitN([]byte(cmdline), []byte{0}, 3)
	command := string(words[0])
	if len(words) > 1 && len(words[1]) > 0 && filepath.IsAbs(string(words[1])) {
		command += " " + string(words[1])
	}
	return strings.ToValidUTF8(command[:min(len(command), 120)], "")
}

// unitOf returns the cgroup by which systemd and runtimes know the process, "" for none.
func unitOf(cgroups string) string {
	for line := range strings.Lines(cgroups) {
		_, rest, _ := strings.Cut(line, ":")
		controllers, path, _ := strings.Cut(strings.TrimSpace(rest), ":")
		if (controllers == "" || controllers == "name=systemd") && len(path) > 1 {
			return path
		}
	}
	return ""
}
