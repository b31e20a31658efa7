package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
)

// call is the plugin's process for a pod, whose sandbox is made where it is new.
func (s *site) call(command, id string, wait time.Duration) *exec.Cmd {
	s.t.Helper()
	if _, ok := s.pods[id]; !ok {
		ns := isolate.Namespace{Name: s.node.Name + "-" + id}
		s.must(ns.Create())
		s.pods[id] = nettest.Netns{Namespace: ns, Path: ns.Path()}
	}
	program := s.use.plugin
	if program == "" {
		program = plugin(s.t)
	}
	cmd := s.command(program)
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID="+id, "CNI_NETNS="+s.pods[id].Path,
		"CNI_IFNAME=eth0", "CNI_PATH=/", "CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME="+id)
	asks := s.asks[id]
	if asks == "" {
		asks = "{}"
	}
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","type":"enipool","cachePath":%q,"waitForAddress":%q,"runtimeConfig":%s}`,
		s.cache.Path, wait, asks))
	return cmd
}

// try runs an ADD or a DEL on the node, and returns what the plugin says if it
// fails.
func (s *site) try(command, id string, wait time.Duration) error {
	s.t.Helper()
	cmd := s.call(command, id, wait)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	err := s.node.Do(cmd.Run)
	if err == nil {
		return nil
	}
	var said struct {
		Code         int
		Msg, Details string
	}
	if e := json.Unmarshal(stdout.Bytes(), &said); e != nil {
		return fmt.Errorf("%s %s: %w\n%s", command, id, err, stdout.Bytes())
	}
	return fmt.Errorf("%s %s: code %d: %s: %s", command, id, said.Code, said.Msg, said.Details)
}

// add attaches pods one after the other, del takes them off.
func (s *site) add(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.must(s.try("ADD", id, 10*time.Second))
	}
}

func (s *site) del(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.must(s.try("DEL", id, 0))
		s.must(s.pods[id].Remove())
		delete(s.pods, id)
	}
}

// addAll starts all pods at once and returns the errors of those that fail.
func (s *site) addAll(ids []string, wait time.Duration) error {
	s.t.Helper()
	var cmds []*exec.Cmd
	for _, id := range ids {
		cmd := s.call("ADD", id, wait)
		cmd.Stdout = &bytes.Buffer{}
		s.must(s.node.Do(cmd.Start))
		cmds = append(cmds, cmd)
	}
	var errs []error
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("ADD %s: %w: %s", ids[i], err, cmd.Stdout))
		}
	}
	return errors.Join(errs...)
}

// reach lets each pod ping what lies behind the VPC, where only packets arrive that
// leave through their address's own ENI.
func (s *site) reach(to string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		if out, err := s.pods[id].Try("ping", "-c", "1", "-W", "2", to); err != nil {
			s.t.Errorf("%s -> %s: %s", id, to, out)
		}
	}
}

// address is the pod's address of a family, as its namespace shows it.
func (s *site) address(id string, six bool) string {
	s.t.Helper()
	family := map[bool]string{false: "-4", true: "-6"}[six]
	words := strings.Fields(s.pods[id].Run(s.t, "ip", family, "-o", "addr", "show", "dev", "eth0", "scope", "global"))
	for i, word := range words {
		if strings.HasPrefix(word, "inet") {
			addr, _, _ := strings.Cut(words[i+1], "/")
			return addr
		}
	}
	s.t.Fatalf("%s has no address: %v", id, words)
	return ""
}
