package configfile

import (
	"os"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) {
	nettest.Isolate()
	os.Exit(m.Run())
}
