package cluster

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// cacheWait is how long the node cache's lock is waited for. The next tick reads it again.
const cacheWait = time.Second

// TellENIs returns what a tick's status is published with, and then the devices of the node hear of its ENIs.
func TellENIs(d *kube.Devices, cache nodecache.Cache, publish func(status.Status, string) error) func(status.Status, string) error {
	return func(s status.Status, why string) error {
		err := publish(s, why)
		ctx, cancel := context.WithTimeout(context.Background(), cacheWait)
		defer cancel()
		_ = cache.View(ctx, func(pool *ipam.State) error { // what is wrong with it the tick has told
			d.ENIs(withAddresses(pool), s.PerENI)
			return nil
		})
		return err
	}
}

// withAddresses returns the IDs of the ENIs that have addresses for pods, in allocation order. A primary ENI may have none.
func withAddresses(pool *ipam.State) []string {
	has := map[int]bool{} // by device index
	for _, a := range pool.Addresses {
		has[a.ENI] = true
	}
	var ids []string
	for _, nic := range pool.ENIs {
		if has[nic.Index] {
			ids = append(ids, nic.ID)
		}
	}
	return ids
}
