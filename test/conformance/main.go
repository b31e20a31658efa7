// Command conformance runs Kubernetes' own specs on the tests' cluster with enipool, in one variant
// after the other, and writes test/CONFORMANCE.md. A spec that fails is a result and no failure. What
// it runs is TestSpecsOfKubernetes of test/cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enipool/enipool/test/kube"
)

// The specs: all of the network's that conformance asks for, and those where an address of a pod, its
// resources or the order of pods could come in the way of the others. Slow ones only if conformance
// asks for them, and none of a feature that has to be switched on.
const (
	chosen = `\[sig-network\].*\[Conformance\]|HostPort|\[sig-apps\] StatefulSet|\[sig-node\] Pods |LimitRange|\[sig-node\] Pod InPlace Resize`
	labels = `(!Slow || Conformance) && !Flaky && !Disruptive && !Alpha && !Deprecated && !/^Feature/`
)

// variant is a cluster on which the specs are run.
type variant struct {
	name, about string
	flags       []string // of the test
}

var variants = []variant{
	{"nftables", "kube-proxy in the mode nftables, without the component `scheduling`", []string{"-specs.proxy=nftables"}},
	{"iptables", "kube-proxy in the mode iptables, without the component `scheduling`", []string{"-specs.proxy=iptables"}},
	{"scheduling", "kube-proxy in the mode nftables, with the component `scheduling`, which adds a request of `enipool.io/pod-addresses` to each pod", []string{"-specs.proxy=nftables", "-specs.scheduling"}},
	{"ptp", "ptp, host-local and portmap in place of enipool on nodes with one link, kube-proxy in the mode nftables: what fails here too is none of enipool's",
		[]string{"-specs.proxy=nftables", "-specs.ptp"}},
}

// options are those of a run.
type options struct {
	variants, focus, labels, folder, out string
	procs                                int
	keep                                 bool
}

func main() {
	var o options
	flag.StringVar(&o.variants, "variants", "nftables,iptables,scheduling,ptp", "which variants, in this order")
	flag.StringVar(&o.focus, "focus", chosen, "which specs, by a regular expression")
	flag.StringVar(&o.labels, "labels", labels, "which of them, by a filter of ginkgo's for labels")
	flag.IntVar(&o.procs, "procs", 4, "how many specs run at once")
	flag.StringVar(&o.folder, "reports", ".build/conformance", "the folder for ginkgo's reports and logs")
	flag.StringVar(&o.out, "out", "test/CONFORMANCE.md", "the file to write")
	flag.BoolVar(&o.keep, "keep", false, "run no variant whose report is in the folder already")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run runs the variants. What one has found is written although a later one fails.
func run(ctx context.Context, o options) error {
	wanted, err := variantsOf(o.variants)
	if err != nil {
		return err
	}
	head, err := pageHead(o)
	if err != nil {
		return err
	}
	var results []result
	var errs error
	for _, v := range wanted {
		r, err := runVariant(ctx, o, v)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", v.name, err))
			continue
		}
		results = append(results, r)
		fmt.Printf("%s: %s\n", v.name, r.cell(""))
		if err := os.WriteFile(o.out, []byte(page(head, results)), 0o644); err != nil {
			return errors.Join(errs, err)
		}
	}
	return errs
}

func variantsOf(names string) (list []variant, err error) {
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, v := range variants {
			if v.name == name {
				list, found = append(list, v), true
			}
		}
		if !found {
			return nil, fmt.Errorf("-variants: there is no %q, only nftables, iptables, scheduling and ptp", name)
		}
	}
	return list, nil
}

// runVariant runs the specs and reads the report of them.
func runVariant(ctx context.Context, o options, v variant) (result, error) {
	report, err := filepath.Abs(filepath.Join(o.folder, v.name+".json"))
	if err != nil {
		return result{}, err
	}
	if _, err := os.Stat(report); err != nil || !o.keep {
		_ = os.Remove(report) // one of an earlier run would be taken for this one's
		fmt.Printf("%s: the specs run, which takes ten minutes; %s.log tells how it goes\n", v.name, report)
		cmd := exec.CommandContext(ctx, "go", v.command(o, report)...)
		cmd.Env = append(os.Environ(), "ENIPOOL_KUBE=1", "ENIPOOL_E2E=1")
		// What the test started it removes itself, which takes some time.
		cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, time.Minute
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return result{}, fmt.Errorf("run the specs: %w", err)
		}
	}
	f, err := os.Open(report)
	if err != nil {
		return result{}, err
	}
	defer f.Close()
	began, specs, err := readReport(f)
	return result{v, began, specs}, err
}

// command is that of the go command which runs the specs.
func (v variant) command(o options, report string) []string {
	return append([]string{"test", "./test/cluster", "-vet=off", "-count=1", "-timeout=0", "-run=^TestSpecsOfKubernetes$",
		"-specs.report=" + report, "-specs.focus=" + o.focus, "-specs.labels=" + o.labels, fmt.Sprint("-specs.procs=", o.procs)}, v.flags...)
}

// pageHead says what was run, where and when.
func pageHead(o options) (string, error) {
	specs, err := kube.Specs()
	if err != nil {
		return "", err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("ask for the kernel's version: %w", err)
	}
	what := strings.Split(filepath.Base(specs), "-") // specs-1.36.3-coredns-1.14.2
	return fmt.Sprintf(pageText, unix.ByteSliceToString(u.Release[:]), runtime.NumCPU(), what[1], what[3], o.focus, o.labels), nil
}

const pageText = `# Kubernetes' own specs with enipool

Written by ` + "`make conformance`" + ` (` + "`go run ./test/conformance`" + `). Linux %s, %d CPUs, Kubernetes %s with containerd and runc of
Debian, CoreDNS %s. e2e.test, agnhost, kube-proxy and CoreDNS are built from their Go modules.

Two nodes on a simulated VPC, each with 15 ENIs of 6 addresses, so that pods which talk to each other are seldom on one ENI; DNS is
a Deployment whose pods have addresses like all others. The specs are those that match ` + "`%s`" + `
and have the labels ` + "`%s`" + `.

There is no registry: agnhost, busybox and what queries DNS are images of the built programs and of this machine's busybox, bash, curl,
dig, getent and nc, under the names that the suite knows. agnhost's web server stands in for nginx. A spec that
runs another image can't pass.

`
