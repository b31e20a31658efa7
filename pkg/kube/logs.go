package kube

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// TakeLogs sends what the Kubernetes libraries log to a log of the program's own, a
// step less loud than they mean it: what they can't do they try again, and the
// package itself says what a person should know. The libraries have one log for the
// whole process, so this is to be called once, before New.
func TakeLogs(to *slog.Logger) {
	klog.SetLogger(logr.FromSlogHandler(lower{to.Handler()}))
}

// step is the distance from slog.LevelInfo to slog.LevelDebug, and from
// slog.LevelError to slog.LevelWarn.
const step = slog.LevelInfo - slog.LevelDebug

// lower is a handler that takes everything a step down.
type lower struct{ to slog.Handler }

// Enabled implements slog.Handler.
func (l lower) Enabled(ctx context.Context, level slog.Level) bool {
	return l.to.Enabled(ctx, level-step)
}

// Handle implements slog.Handler.
func (l lower) Handle(ctx context.Context, r slog.Record) error {
	r.Level -= step
	return l.to.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l lower) WithAttrs(attrs []slog.Attr) slog.Handler { return lower{l.to.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (l lower) WithGroup(name string) slog.Handler { return lower{l.to.WithGroup(name)} }
