package main

import (
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
)

// newFastPath makes what keeps the fast path, and has new configurations switch it.
func newFastPath(conf agentconf.Config, r *reload) *node.FastPath {
	r.fast = &node.FastPath{Cache: nodecache.Cache{Path: conf.Cache}, Log: r.log, Changed: make(chan struct{}, 1)}
	r.fast.Switch(conf.FastPath != agentconf.Off)
	return r.fast
}
