package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// traffic is what a pod has going on for as long as a test lasts.
type traffic struct {
	ping   *exec.Cmd
	said   bytes.Buffer
	conn   net.Conn
	broken chan error // why the connection ended, nil if it was closed
}

// talk lets the pod ping the internet and talk to a service there without a pause.
func (s *site) talk(id string) *traffic {
	s.t.Helper()
	var l net.Listener
	s.must(s.far.Do(func() (err error) { l, err = net.Listen("tcp4", internet4+":0"); return err }))
	s.t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for b := make([]byte, 1); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}()
	tr := &traffic{ping: exec.Command("ping", "-i", "0.02", internet4), broken: make(chan error, 1)}
	tr.ping.Stdout, tr.ping.Stderr = &tr.said, &tr.said
	s.must(s.pods[id].Do(tr.ping.Start))
	s.must(s.pods[id].Do(func() (err error) {
		tr.conn, err = net.DialTimeout("tcp4", l.Addr().String(), 5*time.Second)
		return err
	}))
	go func() { tr.broken <- tr.echo() }()
	return tr
}

// echo has each byte sent back, soon enough for a packet that was lost to show.
func (tr *traffic) echo() error {
	for b := make([]byte, 1); ; {
		_, err := tr.conn.Write(b)
		if err == nil {
			err = tr.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		}
		if err == nil {
			_, err = tr.conn.Read(b)
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// unbroken ends the traffic and wants every packet answered but the last, which may
// be on its way.
func (tr *traffic) unbroken(t *testing.T) {
	t.Helper()
	tr.conn.Close()
	if err := <-tr.broken; err != nil {
		t.Errorf("the connection broke: %v", err)
	}
	_ = tr.ping.Process.Signal(syscall.SIGINT)
	_ = tr.ping.Wait() // its words tell
	m := regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`).FindSubmatch(tr.said.Bytes())
	if m == nil {
		t.Fatalf("ping said %s", &tr.said)
	}
	sent, _ := strconv.Atoi(string(m[1]))
	received, _ := strconv.Atoi(string(m[2]))
	if received < sent-1 || received < 10 {
		t.Errorf("%d pings sent, %d answered", sent, received)
	}
}

func TestAgentsComeAndGoAndPodsDoNotNotice(t *testing.T) {
	t.Parallel()
	for _, conf := range [][]string{{"snat: true"}, {"routing: rule"}} {
		t.Run(conf[0], func(t *testing.T) {
			s := newSite(t, plan{name: "restart-" + conf[0][:4], limits: tiny})
			s.configure(append(conf, "pool.batch: 2")...)
			agent := s.start()
			s.poolOf(2)
			s.add("a", "b", "c") // c is on ENI 1
			s.poolOf(4)
			s.tickAfter()
			near, far := s.talk("a"), s.talk("c")
			before, calls := s.kernel(), s.mutations()
			for _, end := range []func(*process){(*process).terminate, (*process).kill, (*process).terminate} {
				end(agent)
				agent = s.start()
				s.ready()
				s.tickAfter()
				if diff := cmp.Diff(before, s.kernel()); diff != "" {
					t.Errorf("a restart changed the kernel (-before +after):\n%s", diff)
				}
				if regexp.MustCompile("repaired|updated|built").MatchString(agent.said()) {
					t.Error("a new agent does what was done")
				}
			}
			near.unbroken(t)
			far.unbroken(t)
			if diff := cmp.Diff(calls, s.mutations()); diff != "" {
				t.Errorf("calls (-before +after):\n%s", diff)
			}
		})
	}
}

func TestWithoutAnAgentPodsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "down"})
	agent := s.start()
	s.poolOf(16)
	s.add("a", "b")
	agent.kill()
	s.must(s.stop()) // nor is there a cloud
	s.del("a")
	for _, id := range names("pod", 5) {
		s.add(id)
		s.reach(internet4, "b", id)
		s.del(id)
	}
	s.add(names("late", 15)...)
	if c, err := s.count(); err != nil || c.Used != 16 {
		t.Errorf("%+v, %v; want all 16 used", c, err)
	}
	err := s.try("ADD", "more", 0)
	if err == nil || !regexp.MustCompile(`^ADD more: code 11: no free ipv4 address: 16 addresses on 1 ENIs, 16 used, 0 cooling`).MatchString(err.Error()) {
		t.Errorf("ADD without a free address: %v", err)
	}
	s.serve()
	s.start()
	s.poolOf(32)
}

func TestADeadSandboxIsReclaimedWithoutADel(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "dead"})
	agent := s.start()
	s.poolOf(16)
	s.add("dead", "alive")
	s.must(s.pods["dead"].Remove())
	delete(s.pods, "dead")
	agent.says(`msg=reclaim address=10.0.1.3 pod=default/dead reason="its sandbox is gone since \d+s at least and no DEL came"`)
	owners, err := s.owners()
	if want := map[netip.Addr]string{netip.MustParseAddr("10.0.1.4"): "default/alive pods/alive/eth0"}; !maps.Equal(owners, want) {
		t.Errorf("owners %v, %v; want %v", owners, err, want)
	}
	s.reach(internet4, "alive")
}

// An agent that is told to end while it works says nothing of failures.
func TestAnAgentThatIsToldToEndDoesNotComplain(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "end", limits: tiny})
	s.configure("pool.batch: 2", "routing: rule", "firewall: iptables", "snat: true", "resync: 100ms")
	// iptables that waits at a gate while there is one.
	gate, inside, bin := filepath.Join(s.dir, "gate"), filepath.Join(s.dir, "inside"), filepath.Join(s.dir, "bin")
	s.must(os.Mkdir(bin, 0o700))
	for _, name := range []string{"iptables", "ip6tables"} {
		program, err := exec.LookPath(name)
		s.must(err)
		script := fmt.Sprintf("#!/bin/sh\nwhile [ -e %s ]; do : > %s; done\nexec %s \"$@\"\n", gate, inside, program)
		s.must(os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
	}
	s.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	agent := s.start()
	s.ready()
	s.must(os.WriteFile(gate, nil, 0o600))
	s.eventually("it works", func() error { _, err := os.Stat(inside); return err })
	s.must(agent.Cmd.Process.Signal(syscall.SIGTERM))
	s.must(os.Remove(gate))
	agent.terminate()
	if regexp.MustCompile("level=(WARN|ERROR)").MatchString(agent.said()) {
		t.Error("it complains")
	}
}
