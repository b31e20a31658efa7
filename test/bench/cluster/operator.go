package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	testbed "github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
)

// operatorProcess is the operator's program.
type operatorProcess struct {
	*lab.Process
	log  string // its file
	page string // where its pages are
}

// share is how much of the account's rates the operator takes, in percent.
const share = 80

// startOperator starts one of the operators of the cluster.
func (b *bed) startOperator() (*operatorProcess, error) {
	at, err := freeAddress()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("operator-%d", len(b.operators)+1)
	o := &operatorProcess{log: filepath.Join(b.dir, name+".log"), page: "http://" + at}
	kubeconfig, file := filepath.Join(b.dir, "kubeconfig"), filepath.Join(b.dir, name+".yaml")
	// The account behind the socket tells no buckets: they are said here, less the share of others.
	text := fmt.Sprintf("cloud: {endpoint: 'http://%s', cluster: bench, instance: i-operator, subnets: [%s]}\nsettle: %s\nkubeconfig: %s\nlisten: %s\nprofile: true\nbudget:\n",
		b.address, subnet, b.settle, kubeconfig, at)
	for action, bucket := range b.buckets() {
		text += fmt.Sprintf("  %s: {burst: %d, perSecond: %g}\n", action, bucket.Burst*share/100, float64(time.Second)/float64(bucket.Every)*share/100)
	}
	if err := errors.Join(os.WriteFile(kubeconfig, b.env.KubeConfig, 0o600), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return nil, err
	}
	log, err := os.Create(o.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(b.operator, "--config", file)
	cmd.Stdout, cmd.Stderr = log, log
	if o.Process, err = lab.Start(cmd, func(fn func() error) error { return fn() }); err != nil {
		return nil, fmt.Errorf("start %s (make build makes it): %w", b.operator, err)
	}
	b.operators = append(b.operators, o)
	return o, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// leads tells whether it is this operator's term, by its log.
func (o *operatorProcess) leads() bool {
	text, _ := os.ReadFile(o.log)
	return o.Alive() && bytes.LastIndex(text, []byte("this operator leads\"")) > bytes.LastIndex(text, []byte("another operator leads"))
}

// awaitLeader waits until one of the operators leads and has described everything.
func (b *bed) awaitLeader() (leader *operatorProcess, err error) {
	before := b.account.Calls()[sim.ActSubnets]
	return leader, testbed.Wait(2*time.Minute, func() error {
		for _, o := range b.operators {
			if !o.Alive() {
				text, _ := os.ReadFile(o.log)
				return fmt.Errorf("the operator has ended:\n%s", text)
			}
			if o.leads() {
				leader = o
			}
		}
		if leader == nil || b.account.Calls()[sim.ActSubnets] == before {
			return errors.New("no operator leads yet")
		}
		return nil
	})
}

// usage is what a process takes.
type usage struct {
	resident, most float64 // MB
	cpu            time.Duration
}

// usageOf reads what the kernel tells of a process.
func usageOf(pid int) (u usage, err error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(text)) {
		field := strings.Fields(line)
		if len(field) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(field[1], 64)
		switch field[0] {
		case "VmRSS:":
			u.resident = kb / 1000
		case "VmHWM:":
			u.most = kb / 1000
		}
	}
	if text, err = os.ReadFile(filepath.Join(folder, "stat")); err != nil {
		return u, err
	}
	// The name stands in brackets and may have blanks; user and system time are the 12th and 13th field after it, in hundredths.
	field := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	for _, at := range []int{11, 12} {
		ticks, err := strconv.Atoi(field[at])
		if err != nil {
			return u, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		u.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	return u, nil
}

// findInTree returns the path of a file of this project, from here or from a folder below its top.
func findInTree(name string) (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		at := filepath.Join(dir, name)
		if _, err := os.Stat(at); err == nil {
			return at, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.Join(err, fmt.Errorf("find %s: neither here nor in a folder above", name))
}
