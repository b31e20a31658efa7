package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/config"
)

// printError writes the protocol's error object, which, unlike types.Error,
// carries the version of the specification.
func printError(w io.Writer, err *types.Error, cniVersion string) {
	object := struct {
		CNIVersion string `json:"cniVersion"`
		Code       uint   `json:"code"`
		Msg        string `json:"msg"`
		Details    string `json:"details"`
	}{cniVersion, err.Code, err.Msg, err.Details}
	text, _ := json.MarshalIndent(object, "", "    ") // strings and a number always marshal
	// If the runtime is gone there is nobody left to tell.
	_, _ = w.Write(append(text, '\n'))
}

// openLog returns the log of the configuration. Without a file, warnings go to
// standard error, from where runtimes log them. A log that can't be opened is
// no reason to keep a pod from starting.
func openLog(conf config.Plugin) (*slog.Logger, func() error) {
	stderr := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	nothing := func() error { return nil }
	if conf.LogFile == "" {
		return stderr, nothing
	}
	f, err := os.OpenFile(conf.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		// It names pods and addresses; one made by somebody else may be open to all.
		err = f.Chmod(0o600)
	}
	if err != nil {
		stderr.Warn("no log file", "error", fmt.Errorf("open log: %w", err))
		return stderr, nothing
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(conf.LogLevel)) // config has checked it
	log := slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: level}))
	return log.With("pid", os.Getpid(), "command", os.Getenv("CNI_COMMAND")), f.Close
}
