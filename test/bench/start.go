package main

import (
	"fmt"
	"os"
)

// startRow measures what each start of the plugin costs whatever it does, and
// how large it is.
func (b *bench) startRow() error {
	var starts, sizes []measure
	for _, plugin := range []string{"enipool", "ptp"} {
		starts = append(starts, measure{what: "VERSION " + plugin, command: "CNI_COMMAND=VERSION " + plugin + ` < {"cniVersion":"1.0.0"}`, unit: "ms"})
		info, err := os.Stat(b.bin.path(plugin))
		if err != nil {
			return err
		}
		sizes = append(sizes, measure{what: "size of " + plugin, command: "CGO_ENABLED=0 go build -trimpath -gcflags=github.com/vishvananda/...=-l -ldflags '-s -w'", unit: "MB",
			values: []float64{float64(info.Size()) / 1e6}})
	}
	for n := range b.runs + 1 {
		b.round("VERSION", n, b.runs)
		for i, plugin := range []string{"enipool", "ptp"} {
			p := process{path: b.bin.path(plugin), env: []string{"CNI_COMMAND=VERSION"}, stdin: `{"cniVersion":"1.0.0"}`}
			ms, _, err := p.run()
			if err != nil {
				return fmt.Errorf("VERSION %s: %w", plugin, err)
			}
			if n > 0 {
				starts[i].add(ms)
			}
		}
	}
	b.report.add(append(starts, sizes...), target{of: starts[0], want: 2}, target{of: sizes[0], want: 4})
	return nil
}
