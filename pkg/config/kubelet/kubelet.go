// Package kubelet finds out how many pods the node's kubelet may run, from the
// kubelet's own command line and files. It is apart from its parent so that the
// exec plugin does not link a YAML parser.
package kubelet

import (
	"cmp"
	"errors"
	"io/fs"
)

// DefaultMaxPods is the kubelet's own default of maxPods.
const DefaultMaxPods = 110

// places are where a kubelet that can't be seen usually has its file and, with
// some of them, its folder of drop-ins.
var places = [...]struct{ file, dropins string }{
	{"/var/lib/kubelet/config.yaml", usualDropins},
	{"/etc/kubernetes/kubelet/kubelet-config.json", usualDropins},
	{"/etc/kubernetes/kubelet/config.json", "/etc/kubernetes/kubelet/config.json.d"},
	{"", usualDropins},
}

const usualDropins = "/etc/kubernetes/kubelet.conf.d"

// said is a number of pods and where it is from; without a source it is not known.
type said struct {
	maxPods int
	source  string
}

// MaxPods returns how many pods the node may run and, for people, who says so. In
// this order, which is the kubelet's own:
//
//   - fixed, if it is not 0;
//   - --max-pods on the kubelet's command line;
//   - its drop-ins, the last one first, and then its file. The command line says
//     where they are; where no kubelet is seen, the usual places are tried. file,
//     if it is not "", stands for the kubelet's file;
//   - 110.
//
// All paths are below root, which is "/" but for tests. An error tells what could not be read; n
// is usable all the same.
func MaxPods(fixed int, file, root string) (n int, source string, err error) {
	if fixed > 0 {
		return fixed, "maxPods of the agent's configuration", nil
	}
	k, running := find(root)
	last := k.flag
	switch {
	case last.source != "":
	case running || file != "":
		last, err = k.read(cmp.Or(file, k.config), k.configDir)
	default:
		last, err = k.readUsual()
	}
	if last.maxPods <= 0 { // for the kubelet too this means its default
		return DefaultMaxPods, "default", err
	}
	return last.maxPods, last.source, err
}

// read reads the file and the drop-ins, "" for none. An error of one does not keep the other from
// being read.
func (k process) read(file, dropins string) (last said, err error) {
	if file != "" {
		last, err = k.readFile(file)
	}
	if dropins == "" {
		return last, err
	}
	over, errOver := k.readDropins(dropins)
	if over.source != "" {
		last = over
	}
	return last, errors.Join(err, errOver)
}

// readUsual reads what is there in the first of the usual places that has a file.
func (k process) readUsual() (last said, err error) {
	for _, p := range places {
		if p.file == "" {
			last, err = said{}, nil
		} else if last, err = k.readFile(p.file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		over, errOver := k.readDropins(p.dropins)
		if over.source != "" {
			last = over
		}
		if !errors.Is(errOver, fs.ErrNotExist) {
			err = errors.Join(err, errOver)
		}
		break
	}
	return last, err
}
