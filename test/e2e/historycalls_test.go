package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/test/history"
)

// worker is one of the processes of a history: it runs the plugin, call after call.
type worker struct {
	*chronicle
	number int
	random *rand.Rand
}

// step makes a call, or looks.
func (w *worker) step() {
	switch chance := w.random.IntN(100); {
	case chance < 15:
		w.look(w.number)
	case chance < 19:
		w.collect()
	default:
		p := w.choose()
		defer p.Unlock()
		w.serve(p)
	}
}

// choose locks a pod: if it can, one that nobody has locked.
func (w *worker) choose() *chronicled {
	for _, i := range w.random.Perm(len(w.pods)) {
		if w.pods[i].TryLock() {
			return w.pods[i]
		}
	}
	p := w.pods[w.random.IntN(len(w.pods))]
	p.Lock()
	return p
}

// serve does for the pod what mostly comes next, and sometimes what does not: a second ADD,
// a DEL of nothing, the end of a sandbox without a DEL.
func (w *worker) serve(p *chronicled) {
	chance := w.random.IntN(100)
	has := p.last.Kind == history.Add && p.last.Outcome != history.Unknown
	switch {
	case has && chance < 15:
		if err := p.endSandbox(); err != nil {
			w.isBroken(err)
		}
	case has && chance < 80, !has && chance < 25: // of what had an unknown outcome, too
		w.del(p)
	default:
		w.add(p)
	}
}

func (w *worker) add(p *chronicled) {
	if err := p.makeSandbox(); err != nil {
		w.isBroken(err)
		return
	}
	wait := []time.Duration{0, historyCoolDown / 2, 2 * historyCoolDown}[w.random.IntN(3)]
	call := history.Call{Process: w.number, Kind: history.Add, Pods: []string{p.id}}
	said := w.run(&call, "ADD", p.id, fmt.Sprintf(`,"waitForAddress":%q`, wait))
	switch {
	case call.Outcome == history.Done:
		if call.Addr = said.address(); !call.Addr.IsValid() {
			w.isBroken(fmt.Errorf("%s: no address in its result", call))
		}
	case said.Code == 100:
		call.Outcome = history.Refused
	}
	w.end(call, said, p)
}

func (w *worker) del(p *chronicled) {
	call := history.Call{Process: w.number, Kind: history.Del, Pods: []string{p.id}}
	said := w.run(&call, "DEL", p.id, "")
	w.end(call, said, p)
}

// collect is a GC that leaves out the pods which it can lock, three at most: runtimes make
// no call for a pod that is not in their list. For all others calls go on meanwhile. Now and
// then there is no list, and only what is provably dead goes.
func (w *worker) collect() {
	call := history.Call{Process: w.number, Kind: history.GC}
	var out []*chronicled
	valid := []string{}
	listed := w.random.IntN(4) > 0
	for _, i := range w.random.Perm(len(w.pods)) {
		p := w.pods[i]
		if listed && len(out) < 3 && p.TryLock() {
			defer p.Unlock()
			out = append(out, p)
			call.Pods = append(call.Pods, p.id)
			continue
		}
		valid = append(valid, fmt.Sprintf(`{"containerID":%q,"ifname":"eth0"}`, p.id))
	}
	list := ""
	if listed {
		list = `,"cni.dev/valid-attachments":[` + strings.Join(valid, ",") + "]"
	}
	said := w.run(&call, "GC", w.pods[0].id, list)
	w.end(call, said, out...)
}

// end notes a call that has ended, and what it means for its pods.
func (w *worker) end(call history.Call, said spoken, of ...*chronicled) {
	w.record(call, fmt.Sprintf("%s %s", call.Kind, said.how(call)))
	for _, p := range of {
		p.last = call
		if call.Outcome == history.Done {
			w.endDeath(p, call.End)
		}
	}
}

// spoken is what the plugin said.
type spoken struct {
	Code         int
	Msg, Details string
	IPs          []struct{ Address netip.Prefix }
	killed       bool
}

func (s spoken) address() netip.Addr {
	if len(s.IPs) != 1 {
		return netip.Addr{}
	}
	return s.IPs[0].Address.Addr()
}

// how is the call's outcome in a word.
func (s spoken) how(call history.Call) string {
	switch {
	case call.Outcome == history.Done:
		return "done"
	case s.killed:
		return "killed"
	}
	return fmt.Sprintf("code %d", s.Code)
}

// run runs the plugin's process, slows down or kills one in four of them each, the latter at a
// random moment of the time that such a call may take, and sets the call's times and outcome.
func (w *worker) run(call *history.Call, command, id, conf string) (said spoken) {
	cmd := w.s.call(command, id, 0)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion":"1.1.0","name":"pods","type":"enipool","cachePath":%q,"logFile":%q%s}`,
		w.s.cache.Path, w.pluginLog(), conf))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	chance := w.random.IntN(4)
	kill := chance == 0
	if chance == 1 {
		w.slowDown(cmd)
	}
	// Early moments are the more likely ones: some calls wait, and those that don't are short.
	moment := time.Duration(math.Pow(w.random.Float64(), 3) * float64(w.mayTake(call.Kind)))
	call.Begin = nodecache.SinceBoot()
	err := w.s.node.Do(cmd.Start)
	if err != nil {
		w.isBroken(err)
		call.End, call.Outcome = nodecache.SinceBoot(), history.Unknown
		return said
	}
	if kill {
		timer := time.AfterFunc(moment, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	call.End = nodecache.SinceBoot()
	if err != nil {
		call.Outcome = history.Unknown
	}
	if said.killed = cmd.ProcessState.ExitCode() < 0; said.killed {
		return said
	}
	if e := json.Unmarshal(stdout.Bytes(), &said); e != nil && stdout.Len() > 0 {
		w.isBroken(fmt.Errorf("%s: %w\n%s", call, e, &stdout))
	}
	if err != nil && call.Kind != history.Add {
		w.isBroken(fmt.Errorf("%s: %w\n%s%s", call, err, &stdout, &stderr))
	}
	return said
}

// slowDown lets the process sleep as it enters a system call, so that others run between what
// it has read and what it writes: without that, such a moment is too short to be met.
func (w *worker) slowDown(cmd *exec.Cmd) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return // make test installs it where it may
	}
	// So often a call makes each: a line is written once, the kernel is asked many times.
	often := map[string]int{"pwrite64": 1, "flock": 3, "sendto": 8}
	name := []string{"pwrite64", "flock", "sendto"}[w.random.IntN(3)]
	inject := fmt.Sprintf("inject=%s:delay_enter=%d:when=%d", name, 1000+w.random.IntN(20_000), 1+w.random.IntN(often[name]))
	cmd.Path, cmd.Args = strace, append([]string{"strace", "-qq", "-o", "/dev/null", "-e", "trace=" + name, "-e", inject}, cmd.Args...)
}
