package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// mostFailover is how long a starving node may wait for the next leader: the lease, settle, and 5 s.
const mostFailover = 30 * time.Second

// failOver kills the leader. A node whose pods wait has come in that moment.
func (b *bed) failOver(ctx context.Context, leader *operatorProcess) error {
	r := b.report
	n, err := b.addNode(ctx, r.nodes)
	if err != nil {
		return err
	}
	if err := b.bindPods(ctx, n, 1); err != nil {
		return err
	}
	began := time.Now()
	leader.Kill()
	n.start()
	r.progress("the leader was killed")
	for {
		if t, served := n.result(); served > 0 {
			took := t.first.Sub(began)
			r.add("from kill -9 of the leading operator until a starving node is served", seconds(took), seconds(mostFailover), took <= mostFailover)
			return nil
		}
		if time.Since(began) > 10*mostFailover {
			return errors.Join(fmt.Errorf("the node is not served %s after its operator was killed", time.Since(began).Round(time.Second)), b.operatorsEnd())
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
