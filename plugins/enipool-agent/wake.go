package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/fsnotify/fsnotify"
)

// watchConfig sends each new configuration that can be read, until ctx ends. One
// that can't is logged with what is wrong, and the old one stays.
func watchConfig(ctx context.Context, path string, log *slog.Logger) (<-chan agentconf.Config, error) {
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	// The folder and not the file: editors and ConfigMaps rename.
	if err := watch.Add(filepath.Dir(path)); err != nil {
		watch.Close()
		return nil, err
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	out := make(chan agentconf.Config)
	go func() {
		defer watch.Close()
		defer signal.Stop(hup)
		last, _ := os.ReadFile(path)
		for {
			asked := false
			select {
			case <-ctx.Done():
				return
			case <-hup:
				asked = true
			case <-watch.Events:
			case <-watch.Errors:
			}
			text, err := os.ReadFile(path)
			if !asked && (err != nil || string(text) == string(last)) {
				continue
			}
			last = text
			conf, err := readConfig(path)
			if err != nil {
				log.Error("configuration is not taken over", "error", err)
				continue
			}
			select {
			case out <- conf:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
