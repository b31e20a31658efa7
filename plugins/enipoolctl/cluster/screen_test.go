package cluster

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// terminal is a terminal of the kernel, and what was written to it.
type terminal struct {
	*os.File // where programs write
	mu       sync.Mutex
	written  strings.Builder
	more     chan struct{}
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 200})
	}
	if err != nil {
		t.Fatal(err)
	}
	end := &terminal{more: make(chan struct{}, 1)}
	if end.File, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	go func() {
		for text := make([]byte, 4096); ; {
			n, err := master.Read(text)
			if err != nil {
				return
			}
			end.mu.Lock()
			end.written.Write(text[:n])
			end.mu.Unlock()
			select {
			case end.more <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { end.File.Close(); master.Close() })
	return end
}

// await returns what was written once that is all there.
func (e *terminal) await(ctx context.Context, isAll func(string) bool) string {
	for {
		e.mu.Lock()
		text := strings.ReplaceAll(e.written.String(), "\r\n", "\n")
		e.mu.Unlock()
		if isAll(text) {
			return text
		}
		select {
		case <-e.more:
		case <-ctx.Done():
			return text
		}
	}
}

// redLines returns the lines that are red.
func redLines(text string) (red []string) {
	for line := range strings.Lines(text) {
		if inner, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\x1b[31m"); is {
			red = append(red, strings.TrimSuffix(inner, "\x1b[0m"))
		}
	}
	return red
}

func runOn(ctx context.Context, e *terminal, errs *strings.Builder, args ...string) int {
	root := &cobra.Command{Use: "enipoolctl"}
	root.AddCommand(Command())
	return cli.Run(ctx, root, append([]string{"cluster"}, args...), e.File, errs)
}

// On a terminal what people are to look at is red, unless they want no colours.
func TestWhatIsBadIsRed(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	s, flags := cluster3(t)
	s.Put("/apis/enipool.io/v1alpha1/nodenetworks/n3", network("n3", 48, 32, 0, nil)) // grows
	s.Put("/api/v1/namespaces/kube-system/pods/op-1", operatorPod("op-1", "n3"))
	s.Serve("op-1:9810", pagesOf(knows{}))
	end := func(text string) bool { return strings.HasSuffix(text, "END\n") }
	shown := func(args ...string) string {
		e, errs := openTerminal(t), &strings.Builder{}
		if code := runOn(t.Context(), e, errs, append(args, flags...)...); code != 0 {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
		fmt.Fprintln(e, "END")
		return e.await(t.Context(), end)
	}
	for _, tt := range []struct {
		args, red []string // begins of lines
	}{
		{[]string{"nodes"}, []string{"n1 "}},
		{[]string{"subnets"}, []string{"subnet-a "}},
		{[]string{"budget"}, []string{"most of the nodes' ENIs", "AssignPrivateIpAddresses "}},
		{[]string{"why", "n1"}, []string{"n1: 32 of 48 slots"}},
		{[]string{"nodes", "-o", "json"}, nil},
	} {
		red := redLines(shown(tt.args...))
		if !slices.EqualFunc(red, tt.red, strings.HasPrefix) {
			t.Errorf("%v: red is %q, want %q", tt.args, red, tt.red)
		}
	}
	s.Put("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/enipool-operator", lease("", 7*60e9))
	if red := redLines(shown("nodes")); len(red) != 2 || !strings.HasPrefix(red[0], "operator: nobody leads") {
		t.Errorf("without a leader red is %q", red)
	}
	t.Setenv("NO_COLOR", "1")
	if text := shown("nodes"); strings.Contains(text, "\x1b") {
		t.Errorf("with NO_COLOR: %q", text)
	}
}

// With -w each picture takes the place of the one before, and what can't be read meanwhile does not end it.
func TestAWatchStaysOnTheScreen(t *testing.T) {
	s, flags := cluster3(t)
	ctx, cancel := context.WithCancel(t.Context())
	e, errs, ended := openTerminal(t), &strings.Builder{}, make(chan int)
	go func() { ended <- runOn(ctx, e, errs, append([]string{"nodes", "-w"}, flags...)...) }()
	const home = "\x1b[H\x1b[2J"
	e.await(ctx, func(text string) bool { return strings.Contains(text, "n2 ") })
	s.Put("/apis/enipool.io/v1alpha1/nodenetworks/n2", network("n2", 16, 0, 9, func(n *crd.NodeNetwork) { n.Spec.WaitingSince = since(0) }))
	text := e.await(ctx, func(text string) bool {
		last := text[strings.LastIndex(text, home)+len(home):]
		return strings.Count(text, home) > 1 && strings.Contains(last, "n2    Operator  16    0     9")
	})
	if !strings.HasPrefix(text, home) {
		t.Errorf("it begins with %q", text[:20])
	}
	cancel()
	if code := <-ended; code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// The shell offers what the cluster has.
func TestTheShellOffersNamesOfTheCluster(t *testing.T) {
	s, flags := cluster3(t)
	topology := &crd.PodSubnetTopology{}
	topology.Name = "databases"
	s.Put("/apis/enipool.io/v1alpha1/podsubnettopologies/databases", topology)
	for _, tt := range []struct{ args, want []string }{
		{[]string{"why", ""}, []string{"n1", "n2", "n3"}},
		{[]string{"why", "n1", ""}, nil},
		{[]string{"claims", "--node", ""}, []string{"n1", "n2", "n3"}},
		{[]string{"claims", "--topology", ""}, []string{"databases"}},
	} {
		// What is completed comes last.
		code, out, errs := run(Command(), slices.Concat([]string{cobra.ShellCompNoDescRequestCmd, "cluster", tt.args[0]}, flags, tt.args[1:])...)
		got := strings.Fields(strings.Split(out, ":")[0])
		if code != 0 || !slices.Equal(got, tt.want) {
			t.Errorf("%v: exit %d, %q, %s", tt.args, code, got, errs)
		}
	}
}
