package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
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

// printResult writes the result in the configuration's version, in one write. From
// version 1.0.0 on it is what types.PrintResult prints, made in one pass instead
// of three and without its indentation.
func printResult(w io.Writer, res *current.Result, cniVersion string) error {
	if cniVersion < "1.0.0" {
		return types.PrintResult(res, cniVersion)
	}
	object := struct {
		CNIVersion string               `json:"cniVersion"`
		Interfaces []*current.Interface `json:"interfaces,omitempty"`
		IPs        []*current.IPConfig  `json:"ips,omitempty"`
		Routes     []*types.Route       `json:"routes,omitempty"`
		DNS        *types.DNS           `json:"dns,omitempty"`
	}{cniVersion, res.Interfaces, res.IPs, res.Routes, nil}
	if !res.DNS.IsEmpty() {
		object.DNS = &res.DNS
	}
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
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
