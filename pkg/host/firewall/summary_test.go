package firewall

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// A table of that name that is another process's own refuses every message.
func TestNftablesThatRefuseEverythingSaySoInOneLine(t *testing.T) {
	nettest.Need(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("needs nft")
	}
	owner := exec.Command("nft", "-i")
	stdin, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		_ = owner.Wait() // the table goes with it
	}()
	if _, err := io.WriteString(stdin, "add table inet enipool-try { flags owner; }\n"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); Works(ipam.Nftables) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Skip("this nft or kernel has no tables with an owner")
		}
	}
	err = Works(ipam.Nftables)
	if err == nil || strings.Contains(err.Error(), "\n") || !errors.Is(err, unix.EPERM) {
		t.Errorf("%v", err)
	}
}

func TestAnErrorOfManyLinesIsSummedUpInOne(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for want, err := range map[string]error{"one": one, "one (and 2 lines more)": errors.Join(one, one, two)} {
		if got := (summary{err}); got.Error() != want || !errors.Is(got, one) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
