package install

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// Apply carries the plan out and says each thing it did. If it fails, or is cut
// off, each file is the old or the new one, and a later run completes it.
func (p *Plan) Apply(ctx context.Context, say func(Line)) error {
	options, tree := p.options, p.options.Tree
	// What a run left that was killed between create and rename, only the next run removes.
	dirs := []string{StateDir, options.BinDir, options.ConfDir}
	for _, system := range options.System {
		dirs = append(dirs, filepath.Dir(system.Path))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := tree.removeUnfinished(dir); err != nil {
			return err
		}
	}
	if err := p.placePrograms(say); err != nil {
		return err
	}
	for _, system := range options.System {
		if err := tree.putSystem(system, say); err != nil {
			return err
		}
	}
	return p.stageConflist(ctx, say)
}

// Preview says what Apply would change.
func (p *Plan) Preview() []Line {
	options, tree := p.options, p.options.Tree
	var lines []Line
	for _, prog := range p.programs {
		if !tree.holds(prog.file) {
			lines = append(lines, Linef(Would, "install %s", prog))
		}
	}
	for _, system := range options.System {
		switch at, err := tree.Path(system.Path); {
		case err != nil:
		case system.Text == "":
			if _, err := os.Lstat(at); err == nil {
				lines = append(lines, Linef(Would, "remove %s", system.Path))
			}
		case system.hasService(tree) && !tree.holds(system.asFile()):
			lines = append(lines, Linef(Would, "write %s: %s", system.Path, system.Why))
		}
	}
	if !tree.holds(file{stagedConflist(), options.Conflist.Text, 0o600}) {
		lines = append(lines, Linef(Would, "stage %s", stagedConflist()))
	}
	if at := options.publishedPath(); options.Now && !tree.holds(file{at, options.Conflist.Text, 0o600}) {
		lines = append(lines, Linef(Would, "publish %s", at))
	}
	return lines
}

// hasService tells whether the service that the file is for is there.
func (f SystemFile) hasService(tree Tree) bool { return f.Needs == "" || tree.hasDir(f.Needs) }

func (f SystemFile) asFile() file { return file{f.Path, []byte(f.Text), 0o644} }

// placePrograms writes the manifest with the sums of old and new programs, puts the programs on the
// node, and writes the manifest with the new sums alone.
func (p *Plan) placePrograms(say func(Line)) error {
	tree, memory := p.options.Tree, p.memory
	memory.Release = p.options.Release
	memory.publishAt(p.options.publishedPath())
	for _, prog := range p.programs {
		known := memory.Programs[prog.path]
		if s := hexSum(prog.text); !slices.Contains(known.Sums, s) {
			known.Sums = append(known.Sums, s)
		}
		known.Replaced = prog.replaces
		memory.Programs[prog.path] = known
	}
	// With old and new sums: if the run is cut off between two programs, uninstall must know both.
	if err := tree.writeManifest(memory); err != nil {
		return err
	}
	for _, prog := range p.programs {
		changed, err := tree.putFile(prog.file)
		if err != nil {
			return err
		}
		say(Linef(ifChanged(changed, Installed), "%s", prog))
	}
	for _, prog := range p.programs {
		memory.Programs[prog.path] = installed{Sums: []string{hexSum(prog.text)}, Replaced: prog.replaces}
	}
	return tree.writeManifest(memory)
}

func ifChanged(changed bool, w What) What {
	if changed {
		return w
	}
	return Unchanged
}

// putSystem puts the file where its service is there, or takes it away.
func (t Tree) putSystem(system SystemFile, say func(Line)) error {
	if system.Text == "" {
		removed, err := t.removeFile(system.Path)
		if removed {
			say(Linef(Removed, "%s", system.Path))
		}
		return err
	}
	if !system.hasService(t) {
		return nil
	}
	changed, err := t.putFile(system.asFile())
	switch {
	case err != nil:
		return err
	case changed:
		say(Linef(Wrote, "%s: %s; in effect %s", system.Path, system.Why, system.Effect))
	default:
		say(Linef(Unchanged, "%s", system.Path))
	}
	return nil
}

// stageConflist leaves the network configuration to the agent, or publishes it.
func (p *Plan) stageConflist(ctx context.Context, say func(Line)) error {
	options, tree := p.options, p.options.Tree
	changed, err := tree.putFile(file{stagedConflist(), options.Conflist.Text, 0o600})
	if err != nil {
		return err
	}
	at := options.publishedPath()
	// Without an agent nobody else publishes it.
	if options.Now {
		changed, err := tree.putFile(file{at, options.Conflist.Text, 0o600})
		if err == nil {
			say(Linef(ifChanged(changed, Published), "%s", at))
		}
		return err
	}
	if err := tree.makeDir(options.ConfDir); err != nil {
		return err
	}
	if changed {
		say(Linef(Staged, "%s: the agent puts it at %s when it can serve", stagedConflist(), at))
	} else {
		say(Linef(Unchanged, "%s", stagedConflist()))
	}
	return tree.withdrawConflist(ctx, at, say)
}
