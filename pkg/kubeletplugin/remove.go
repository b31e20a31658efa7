package kubeletplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// UsedError says that the kubelet has claims that are prepared: only a plugin that knows them can end them.
type UsedError struct {
	Path   string // of the file that names them, below the kubelet's folder
	Claims int    // how many
}

func (e *UsedError) Error() string {
	return fmt.Sprintf("%d claims of pods are prepared; drain the node while the agent runs, and uninstall then", e.Claims)
}

// Remove takes away what plugins of a driver have left in a kubelet's folder, and returns the paths below that, also with an error. The
// sockets go first, by which the kubelet forgets the plugin. What others have put there stays, and so does all where claims are
// prepared, which is an UsedError. No plugin may run.
func Remove(folder, driver string) (removed []string, err error) {
	p := Plugin{options: Options{Driver: driver, Folder: folder}}
	path := filepath.Join(p.pluginFolder(), recordsName)
	// A damaged file is one without claims, as for an agent that starts.
	records, _, _ := openRecords(path)
	if n := len(records.claims); n > 0 {
		return nil, &UsedError{p.below(path), n}
	}
	for _, path := range []string{p.registrationPath(), p.socketPath(), path, filepath.Join(p.pluginFolder(), unfinishedName)} {
		info, err := os.Lstat(path)
		isOurs := err == nil && (info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSocket)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !isOurs {
			continue
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			return removed, fmt.Errorf("remove what devices had in the kubelet's folder: %w", err)
		}
		removed = append(removed, p.below(path))
	}
	switch err := syscall.Rmdir(p.pluginFolder()); {
	case err == nil:
		return append(removed, p.below(p.pluginFolder())), nil
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EBUSY):
		return removed, nil // there is none, or others use it
	default:
		return removed, fmt.Errorf("remove the plugin's folder %s: %w", p.pluginFolder(), err)
	}
}

// below is a path as the kubelet's folder has it.
func (p *Plugin) below(path string) string {
	name, err := filepath.Rel(p.options.Folder, path)
	if err != nil {
		return path
	}
	return name
}
