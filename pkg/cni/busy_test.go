package cni

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/podrecord"
)

func TestALockOfTheRecordsThatOthersHoldIsToTryAgainLater(t *testing.T) {
	f := podrecord.Beside(filepath.Join(t.TempDir(), "node.cache"))
	l, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Lock(gone)
	if e := Error(err); e.Code != types.ErrTryAgainLater || !strings.Contains(e.Msg, filepath.Join(f.Path, "lock")) || !strings.Contains(e.Msg, fmt.Sprintf("kill %d", os.Getpid())) {
		t.Errorf("error %v, want code 11 with path and cure", e)
	}
}
