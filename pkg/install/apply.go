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
	o, t := p.options, p.options.Tree
	dirs := []string{StateDir, o.BinDir, o.ConfDir}
	for _, f := range o.System {
		dirs = append(dirs, filepath.Dir(f.Path))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := t.sweep(dir); err != nil {
			return err
		}
	}
	if err := p.placePrograms(say); err != nil {
		return err
	}
	for _, f := range o.System {
		if err := t.putSystem(f, say); err != nil {
			return err
		}
	}
	return p.stage(ctx, say)
}

// Preview says what Apply would change.
func (p *Plan) Preview() []Line {
	o, t := p.options, p.options.Tree
	var lines []Line
	for _, prog := range p.programs {
		if !t.holds(prog.file) {
			lines = append(lines, Linef(Would, "install %s", prog))
		}
	}
	for _, f := range o.System {
		switch at, err := t.Path(f.Path); {
		case err != nil:
		case f.Text == "":
			if _, err := os.Lstat(at); err == nil {
				lines = append(lines, Linef(Would, "remove %s", f.Path))
			}
		case f.wanted(t) && !t.holds(f.file()):
			lines = append(lines, Linef(Would, "write %s: %s", f.Path, f.Why))
		}
	}
	if !t.holds(file{staged(), o.Conflist.Text, 0o600}) {
		lines = append(lines, Linef(Would, "stage %s", staged()))
	}
	if at := o.published(); o.Now && !t.holds(file{at, o.Conflist.Text, 0o600}) {
		lines = append(lines, Linef(Would, "publish %s", at))
	}
	return lines
}

// wanted tells whether the service that the file is for is there.
func (f SystemFile) wanted(t Tree) bool { return f.Needs == "" || t.has(f.Needs) }

func (f SystemFile) file() file { return file{f.Path, []byte(f.Text), 0o644} }

// placePrograms writes down what it is about to do, does it, and writes down what
// is: in between the node may hold the old program or the new one.
func (p *Plan) placePrograms(say func(Line)) error {
	t, m := p.options.Tree, p.memory
	m.Release = p.options.Release
	m.publishAt(p.options.published())
	for _, prog := range p.programs {
		known := m.Programs[prog.path]
		if s := hexSum(prog.text); !slices.Contains(known.Sums, s) {
			known.Sums = append(known.Sums, s)
		}
		known.Replaced = prog.replaces
		m.Programs[prog.path] = known
	}
	if err := t.remember(m); err != nil {
		return err
	}
	for _, prog := range p.programs {
		changed, err := t.put(prog.file)
		if err != nil {
			return err
		}
		say(Linef(either(changed, Installed), "%s", prog))
	}
	for _, prog := range p.programs {
		m.Programs[prog.path] = installed{Sums: []string{hexSum(prog.text)}, Replaced: prog.replaces}
	}
	return t.remember(m)
}

func either(changed bool, w What) What {
	if changed {
		return w
	}
	return Unchanged
}

// putSystem puts the file where its service is there, or takes it away.
func (t Tree) putSystem(f SystemFile, say func(Line)) error {
	if f.Text == "" {
		removed, err := t.remove(f.Path)
		if removed {
			say(Linef(Removed, "%s", f.Path))
		}
		return err
	}
	if !f.wanted(t) {
		return nil
	}
	changed, err := t.put(f.file())
	switch {
	case err != nil:
		return err
	case changed:
		say(Linef(Wrote, "%s: %s; in effect %s", f.Path, f.Why, f.Effect))
	default:
		say(Linef(Unchanged, "%s", f.Path))
	}
	return nil
}

// stage leaves the network configuration to the agent, or publishes it.
func (p *Plan) stage(ctx context.Context, say func(Line)) error {
	o, t := p.options, p.options.Tree
	changed, err := t.put(file{staged(), o.Conflist.Text, 0o600})
	if err != nil {
		return err
	}
	at := o.published()
	if o.Now {
		changed, err := t.put(file{at, o.Conflist.Text, 0o600})
		if err == nil {
			say(Linef(either(changed, Published), "%s", at))
		}
		return err
	}
	if err := t.mkdir(o.ConfDir); err != nil {
		return err
	}
	if changed {
		say(Linef(Staged, "%s: the agent puts it at %s when it can serve", staged(), at))
	} else {
		say(Linef(Unchanged, "%s", staged()))
	}
	return t.withdraw(ctx, at, say)
}
