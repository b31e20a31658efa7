package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/config"
	"golang.org/x/sys/unix"
)

// openLog returns the log of the configuration. Without a file, warnings go to
// standard error, from where runtimes log them.
func openLog(conf config.Plugin) (*lineLog, func() error) {
	if conf.LogFile == "" {
		return &lineLog{w: os.Stderr, warn: true}, func() error { return nil }
	}
	f := &logFile{path: conf.LogFile, fd: -1}
	l := &lineLog{w: f, warn: conf.LogLevel != "error"}
	l.info = l.warn && conf.LogLevel != "warn"
	l.each = appendPairs(nil, "pid", os.Getpid(), "command", os.Getenv("CNI_COMMAND"))
	return l, f.Close
}

// lineLog writes the lines that the text handler of log/slog would write. That package would be a
// fortieth of the program's size.
type lineLog struct {
	w          io.Writer
	info, warn bool   // which levels are written
	each       []byte // pairs that each line has after its message
}

// Info tells what was done.
func (l *lineLog) Info(msg string, args ...any) { l.writeLine(l.info, "INFO", msg, args) }

// Warn tells what a person should know.
func (l *lineLog) Warn(msg string, args ...any) { l.writeLine(l.warn, "WARN", msg, args) }

func (l *lineLog) writeLine(wanted bool, level, msg string, args []any) {
	if !wanted {
		return
	}
	line := time.Now().AppendFormat([]byte("time="), "2006-01-02T15:04:05.000Z07:00")
	line = append(appendPairs(line, "level", level, "msg", msg), l.each...)
	// A log that can't be written is no reason to fail.
	_, _ = l.w.Write(append(appendPairs(line, args...), '\n'))
}

// appendPairs appends names and values in turn.
func appendPairs(line []byte, args ...any) []byte {
	for i := 0; i+1 < len(args); i += 2 {
		value := fmt.Sprint(args[i+1])
		if value == "" || strings.ContainsFunc(value, needsQuotes) {
			value = strconv.Quote(value)
		}
		line = fmt.Appendf(line, " %s=%s", args[i], value)
	}
	return line
}

// needsQuotes tells whether a value with the rune could be taken for more than one.
func needsQuotes(r rune) bool {
	return r == ' ' || r == '=' || r == '"' || r == '\uFFFD' || !strconv.IsPrint(r)
}

// logFile is a log that is opened for its first line. If it can't be opened the pod starts all the
// same, and the lines go to standard error.
type logFile struct {
	path string
	fd   int // -1 while it is closed
}

// Write appends a line.
func (f *logFile) Write(line []byte) (int, error) {
	if f.fd < 0 {
		if err := f.openFile(); err != nil {
			fmt.Fprintf(os.Stderr, "open log %s: %v\n", f.path, err)
			return os.Stderr.Write(line)
		}
	}
	return unix.Write(f.fd, line)
}

// openFile opens the file by plain calls: an os.File of it would be registered with epoll,
// which is five more.
func (f *logFile) openFile() error {
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
