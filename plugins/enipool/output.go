package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/config"
	"golang.org/x/sys/unix"
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
// standard error, from where runtimes log them.
func openLog(conf config.Plugin) (*slog.Logger, func() error) {
	if conf.LogFile == "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), func() error { return nil }
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(conf.LogLevel)) // config has checked it
	f := &logFile{path: conf.LogFile, fd: -1}
	log := slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: level}))
	return log.With("pid", os.Getpid(), "command", os.Getenv("CNI_COMMAND")), f.Close
}

// logFile is a log that is opened for its first line. One that can't be opened is no
// reason to keep a pod from starting: then its lines go to standard error.
type logFile struct {
	path string
	fd   int // -1 while it is closed
}

// Write appends a line.
func (f *logFile) Write(line []byte) (int, error) {
	if f.fd < 0 {
		if err := f.open(); err != nil {
			fmt.Fprintf(os.Stderr, "open log %s: %v\n", f.path, err)
			return os.Stderr.Write(line)
		}
	}
	return unix.Write(f.fd, line)
}

// open opens the file by plain calls: an os.File of it would be registered with epoll,
// which is five more.
func (f *logFile) open() error {
	fd, err := unix.Open(f.path, unix.O_APPEND|unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	// It names pods and addresses; one made by somebody else may be open to all.
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	f.fd = fd
	return nil
}

// Close closes it.
func (f *logFile) Close() error {
	if f.fd < 0 {
		return nil
	}
	return unix.Close(f.fd)
}
