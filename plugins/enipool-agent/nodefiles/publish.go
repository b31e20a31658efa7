package nodefiles

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/status"
)

// Publisher puts the network configuration that was installed where the runtime
// finds it, once pods can get addresses, and puts it back where it got lost.
type Publisher struct {
	tree  install.Tree
	cache string // the node cache that pods get addresses from
	log   *slog.Logger
	next  time.Time // when to look again
	said  string
	first string    // the configurations that runtimes take before ours, as they were told last
	put   time.Time // when ours was put in place last
	times int       // how often it was, with no longer than lasting in between

	network network
	cluster *Cluster // nil: there is none
}

// NewPublisher returns one for the node that this process runs on; cache is the node cache's path.
func NewPublisher(cache string, log *slog.Logger) *Publisher {
	return &Publisher{cache: cache, log: log}
}

// lookAgain is how long a configuration that is in place is not looked at.
const lookAgain = 10 * time.Second

const (
	// lasting is how long a configuration is to stay in place: what is removed sooner, removals times in a
	// row, somebody removes each time.
	lasting  = 10 * time.Minute
	removals = 3
)

// PublishAfter returns what a tick's status is published with, and the configuration after it.
func (p *Publisher) PublishAfter(publish func(status.Status, string) error) func(status.Status, string) error {
	return func(s status.Status, why string) error {
		err := publish(s, why)
		if s.Ready && p.mayPublish(s.Written) {
			p.publishReady(context.Background(), s.Written)
		}
		p.tellNetwork(s)
		return err
	}
}

// publishReady is called when pods can get addresses.
func (p *Publisher) publishReady(ctx context.Context, now time.Time) {
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(lookAgain)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	path, err := p.tree.Publish(ctx, p.cache)
	p.network.looked(err)
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case path != "":
		p.published(path, now)
	case text == "" || text == p.said:
	case errors.Is(err, install.ErrNotStaged):
		p.log.Info("CNI configuration is not managed by this agent: `enipool-agent install` has staged none here")
	default:
		p.log.Warn("network configuration can't be published", "error", err)
	}
	p.said = text
	if err == nil {
		p.tellFirst()
	}
}

// published tells that the configuration was put in place, or that somebody removes it each time.
func (p *Publisher) published(path string, now time.Time) {
	if p.times++; now.Sub(p.put) > lasting {
		p.times = 1
	}
	p.put = now
	switch {
	case p.times == removals+1:
		p.log.Warn("network configuration is removed again and again by something on this node, and pods that start meanwhile get no network, or that of another plugin",
			"path", path, "todo", "look for another CNI plugin that wants to be alone on the node, as Cilium does without cni.exclusive=false, and take it off the node or let it leave other files")
	case p.times > removals:
		p.log.Debug("network configuration published", "path", path)
	default:
		p.log.Info("network configuration published; the node can turn Ready", "path", path)
	}
}

// tellFirst tells when runtimes begin or cease to take another configuration than ours.
func (p *Publisher) tellFirst() {
	files, err := p.tree.First()
	if err != nil {
		return // what reads the same files tells
	}
	first := strings.Join(files, ", ")
	switch {
	case first == p.first:
	case first == "":
		p.log.Info("runtimes take the network configuration of enipool again")
	default:
		p.log.Warn("runtimes take another network configuration first, and its plugin serves the pods that start: they get no addresses of enipool", "first", first,
			"todo", "take that plugin off the node and move the file away")
	}
	p.first = first
}
