package lab_test

import (
	"io"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/enipool/enipool/test/lab"
)

// A thread that ends takes with it what it started and asked to have killed. While a start waits for the kernel under load
// the runtime gives its goroutine another thread, and the one that started the process to somebody else.
func TestThreadsOfOthersEndAndTheProcessLives(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for begin := time.Now(); ; {
				select {
				case <-stop:
					return
				default:
				}
				if time.Since(begin) > time.Millisecond {
					go runtime.LockOSThread() // never unlocked: the thread ends
					begin = time.Now()
				}
			}
		}()
	}
	for range 50 {
		cmd := exec.Command("cat")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = io.Discard
		p, err := lab.Start(cmd, func(fn func() error) error { return fn() })
		if err != nil {
			t.Fatal(err)
		}
		stdin.Close()
		if <-p.Ended; p.Err != nil {
			t.Fatalf("the process ended with %v", p.Err)
		}
	}
}
