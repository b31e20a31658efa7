// Package wake holds what the loop is woken by beside its own times: changes that others make
// in the kernel, and whatever else works beside it.
package wake

import (
	"context"
	"log/slog"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/node"
)

// WatchKernel lets the agent hear of what others change in the kernel. Where that can't
// be heard the agent finds it at each resync.
func WatchKernel(parts *agent.Parts, log *slog.Logger) Ears {
	kernel, _ := parts.Kernel.(node.Node)
	others := node.NewOthers(kernel.Cache.View)
	watch, err := node.NewWatch(kernel.Cache, others.Note, log)
	if err != nil {
		log.Warn("changes of the kernel can't be heard; the periodic comparison finds them", "error", err)
		return Ears{Others: others}
	}
	kernel.Watch = watch
	parts.Kernel, parts.Disturbance = kernel, watch.Cause
	return Ears{watch, others}
}

// Ears are what hears changes of the kernel, and tells which of them matter: to what
// the node needs, and to what others hold.
type Ears struct {
	Watch  *node.Watch // nil: nothing is heard
	Others *node.Others
}

// Listen hears changes of the kernel until ctx ends. Without it the agent goes on.
func (e Ears) Listen(ctx context.Context, log *slog.Logger) error {
	go e.Others.Run(ctx)
	if err := e.Watch.Run(ctx); err != nil {
		log.Error("changes of the kernel are not heard any more; the periodic comparison finds them", "error", err)
	}
	return nil
}
