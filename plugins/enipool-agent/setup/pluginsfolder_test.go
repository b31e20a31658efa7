package setup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestThePluginIsFoundWhereTheREADMEPutsIt(t *testing.T) {
	own, bin := t.TempDir(), t.TempDir()
	if got := pluginsFolder(own, bin); got != own {
		t.Errorf("plugin nowhere: %s, want the program's own folder, which the error names", got)
	}
	put := func(dir string) {
		if err := os.WriteFile(filepath.Join(dir, "enipool"), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(bin)
	if got := pluginsFolder(own, bin); got != bin {
		t.Errorf("plugin in the node's folder alone: %s, want %s", got, bin)
	}
	put(own)
	if got := pluginsFolder(own, bin); got != own {
		t.Errorf("plugin beside the program: %s, want %s", got, own)
	}
}
