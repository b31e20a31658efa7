package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config"
)

// Usual folders of a runtime, and of the programs it calls.
const (
	BinDir  = "/opt/cni/bin"
	ConfDir = "/etc/cni/net.d"
)

// Folders that services of the system read, and which are there if those are.
const (
	NetworkManagerDir = "/etc/NetworkManager"
	NetworkdDir       = "/etc/systemd/network"
	SysctlDir         = "/etc/sysctl.d"
	TmpfilesDir       = "/etc/tmpfiles.d"
)

// Options say what to install and where. Folders are paths of the node, but From is a path as
// this process sees it.
type Options struct {
	Tree    Tree
	BinDir  string
	ConfDir string
	From    string   // the folder that the programs come in
	Plugins []string // to install from there; nil: what the network configuration calls, and loopback
	// Conflist is the network configuration. With Now it is published at once, for
	// nodes without an agent.
	Conflist Conflist
	Now      bool
	// CachePath is the agent's node cache, "" where that is not known.
	CachePath string
	System    []SystemFile
	Release   string   // of enipool
	Own       []string // files that the agent may have left on the disk, to be removed by Uninstall
}

// publishedPath is where the runtime looks for the network configuration.
func (o Options) publishedPath() string { return filepath.Join(o.ConfDir, ConflistName) }

// SystemFile is a file of enipool's that tells a service of the system not to touch enipool's links
// and settings.
type SystemFile struct {
	Path   string
	Needs  string // the folder that is there if the service is; "": the file is always written
	Text   string // "" for a file that is to be removed
	Why    string // for people: "so that ..."
	Effect string // for people: when the service uses it
}

// Plan is what an installation will do. Lines are what was found on the way; with
// a MustFix among them it should not be carried out.
type Plan struct {
	Lines    []Line
	options  Options
	memory   manifest
	programs []newProgram
}

// newProgram is a program to put on the node.
type newProgram struct {
	file
	release  string // "" if not known
	replaces bool   // it replaces a program that is not enipool's
}

// String is the program as lines name it.
func (p newProgram) String() string { return strings.TrimSpace(p.path + " " + p.release) }

// NewPlan looks at the node and changes nothing. To carry the plan out, hold the
// tree's lock from before this call.
func NewPlan(ctx context.Context, options Options) (*Plan, error) {
	plan := &Plan{options: options}
	var err error
	if plan.memory, err = options.Tree.readManifest(); err != nil {
		plan.addLine(Warning, "%v; what was installed before is not known and counts as another's", err)
	}
	if options.CachePath != "" && options.Conflist.CachePath != options.CachePath {
		plan.addLine(MustFix, "the network configuration has cachePath %s and the agent has cache %s: they must be the same", options.Conflist.CachePath, options.CachePath)
	}
	for _, name := range options.neededPrograms() {
		if err := plan.chooseProgram(ctx, name); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

func (p *Plan) addLine(w What, format string, args ...any) {
	p.Lines = append(p.Lines, Linef(w, format, args...))
}

// loopback is what runtimes call for a pod's own loopback link.
const loopback = "loopback"

// neededPrograms names the programs that the node needs.
func (o Options) neededPrograms() []string {
	list := slices.Concat([]string{config.PluginType}, o.Plugins, o.Conflist.Plugins, []string{loopback})
	var names []string
	for _, name := range list {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ships tells whether the program is one to install from From.
func (o Options) ships(name string) bool {
	return o.Plugins == nil || name == config.PluginType || slices.Contains(o.Plugins, name)
}

// chooseProgram decides whether the node keeps its program of the name or gets that of From.
func (p *Plan) chooseProgram(ctx context.Context, name string) error {
	options := p.options
	path := filepath.Join(options.BinDir, name)
	from := filepath.Join(options.From, name)
	has, err := options.Tree.readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, withRemedy(err))
	}
	there := err == nil
	ours, err := os.ReadFile(from)
	optional := options.Plugins == nil && name != config.PluginType
	if errors.Is(err, fs.ErrNotExist) && optional || !options.ships(name) {
		p.checkNodesOwn(ctx, name, path, there)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; --from names the folder with %s", err, name)
	}
	with := options.Tree.askProgram(ctx, from)
	if with.err != nil {
		p.addLine(MustFix, "%s does not run on this node: %v", from, with.err)
		return nil
	}
	// A program that enipool installed is always replaced, whatever its release.
	mine := !there || name == config.PluginType || p.memory.isOurs(path, hexSum(has))
	if !mine && p.keepsTheirs(ctx, path, with) {
		return nil
	}
	p.checkVersions(name, from, with)
	prog := newProgram{file{path, ours, 0o755}, with.release, !mine || p.memory.Programs[path].Replaced}
	if name == config.PluginType {
		prog.release = options.Release
	}
	p.programs = append(p.programs, prog)
	return nil
}

// checkNodesOwn checks a program that is not installed but must be on the node already.
func (p *Plan) checkNodesOwn(ctx context.Context, name, path string, there bool) {
	needed := slices.Contains(p.options.Conflist.Plugins, name)
	switch {
	case !there && needed:
		p.addLine(MustFix, "the network configuration calls %s, which is neither at %s nor in %s: no pod would start; put it there, or take it out",
			name, path, p.options.From)
	case !there:
		p.addLine(Warning, "%s is missing: without it containerd starts no pod, unless it has use_internal_loopback", path)
	case needed:
		at, err := p.options.Tree.Target(path)
		with := p.options.Tree.askProgram(ctx, at)
		if err = errors.Join(err, with.err); err != nil {
			p.addLine(MustFix, "%s does not tell which protocol versions it speaks: %v; put another one there", path, err)
			return
		}
		p.checkVersions(name, path, with)
	}
}

// keepsTheirs tells whether a program that is not enipool's stays: it does unless ours is of a later
// release, or speaks protocol versions of the network configuration that it lacks.
func (p *Plan) keepsTheirs(ctx context.Context, path string, ours program) bool {
	at, err := p.options.Tree.Target(path)
	if err != nil {
		return false // chooseProgram has read it by this path, so this does not happen
	}
	theirs := p.options.Tree.askProgram(ctx, at)
	want := p.options.Conflist.Versions
	name := filepath.Base(path)
	switch {
	case name != loopback && len(theirs.lacks(want)) > 0 && len(ours.lacks(want)) == 0:
		return false
	case isOlder(theirs.release, ours.release):
		return false
	case theirs.release == "" || ours.release == "":
		p.addLine(Kept, "%s: it is not of enipool, and which release is later can't be told; remove it to get ours", path)
	default:
		p.addLine(Kept, "%s: it is not of enipool, and its release %s is not before our %s", path, theirs.release, ours.release)
	}
	p.checkVersions(name, path, theirs)
	return true
}

// checkVersions reports protocol versions that a runtime may choose and the program does not speak,
// if the network configuration calls the program: loopback is called with another one.
func (p *Plan) checkVersions(name, path string, with program) {
	if !slices.Contains(p.options.Conflist.Plugins, name) {
		return
	}
	if lacks := with.lacks(p.options.Conflist.Versions); len(lacks) > 0 {
		p.addLine(MustFix, "%s does not speak CNI %s, which the network configuration offers the runtime: put a newer one there, or take %s out of cniVersions",
			path, strings.Join(lacks, ", "), strings.Join(lacks, ", "))
	}
}
