package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/status"
)

// publisher puts the network configuration that was installed where the runtime
// finds it, once pods can get addresses, and puts it back where it got lost.
type publisher struct {
	tree  install.Tree
	cache string // the node cache that pods get addresses from
	log   *slog.Logger
	next  time.Time // when to look again
	said  string
}

// lookAgain is how long a configuration that is in place is not looked at.
const lookAgain = 10 * time.Second

// after returns what a tick's status is published with, and the configuration after it.
func (p *publisher) after(publish func(status.Status, string) error) func(status.Status, string) error {
	return func(s status.Status, why string) error {
		err := publish(s, why)
		if s.Ready {
			p.ready(context.Background(), s.Written)
		}
		return err
	}
}

// ready is called when pods can get addresses.
func (p *publisher) ready(ctx context.Context, now time.Time) {
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(lookAgain)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	path, err := p.tree.Publish(ctx, p.cache)
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case path != "":
		p.log.Info("network configuration published; the node can turn Ready", "path", path)
	case text == "" || text == p.said:
	case errors.Is(err, install.ErrNotStaged):
		p.log.Info("CNI configuration is not managed by this agent: `enipool-agent install` has staged none here")
	default:
		p.log.Warn("network configuration can't be published", "error", err)
	}
	p.said = text
}
