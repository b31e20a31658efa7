// Package agentconf reads the agent's configuration file: raw text in, a checked
// Config out. conf/agent.yaml explains every key. It is apart from its parent so
// that the exec plugin does not link a YAML parser.
package agentconf

import (
	"log/slog"
	"time"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// Config is a checked configuration of the agent of one node.
type Config struct {
	Node  string // the name that the cloud and people know the node by, "" for the host's
	Cache string // path of the node cache
	State string // path of the agent's own file: what it remembers over a restart

	Settings    ipam.Settings // what travels in the head of the cache
	AnyFirewall bool          // the packet filter is left to what works on the node

	Cloud    Cloud
	FastPath Switch // Off, or Auto: on as long as it breaks no promise
	Pool     pool.Config
	// ModeSet: the file names the mode. If it does not, a node keeps the mode it
	// has: a new default never changes it silently.
	ModeSet bool
	MaxPods MaxPods

	Kubernetes Kubernetes

	Resync    time.Duration // between two full comparisons with cloud and kernel
	Settle    time.Duration // the consistency window: how long the cloud may show the past
	OrphanAge time.Duration // how long a stale allocation waits for its DEL
	LeakAge   time.Duration // how long an ENI of ours must be attached nowhere to be deleted

	Listen  string // host:port of metrics and health, "" for none
	Profile bool   // serve pprof there too

	LogLevel  slog.Level
	LogFormat string // text or json

	Warnings []string // what the file has that the next release refuses, each with what to do
}

// The providers of clouds.
const (
	Sim   = "sim"
	AWS   = "aws"
	Baidu = "baidu"
	// Operator calls no cloud: the cluster's operator does.
	Operator = "operator"
)

// formerBaidu is what the previous release called Baidu; it knows no other name.
const formerBaidu = "bce"

// Cloud is which cloud to call, what new ENIs are like, and how often it may be called.
type Cloud struct {
	Provider string // Sim, AWS, Baidu or Operator
	Endpoint string // sim: unix:///path or http://loopback:port; else the API's URL, "" for the region's own
	Metadata string // URL of the instance metadata, "" for the cloud's own
	Region   string // "" is what the metadata says
	Instance string // ID of the node's instance, "" is what the metadata says
	Kind     string // baidu: of the instance, "bcc", "bbc" or "ebc", "" is what the metadata says
	VPC      string // baidu: its ID, "" is what the metadata says
	Zone     string // baidu: "zoneA" or "cn-bj-a", "" is what the metadata says
	Cluster  string // whose leaked ENIs the node helps to delete, "" for none

	Subnets        []string          // IDs of those that new ENIs may lie in
	SubnetTags     map[string]string // which those have that new ENIs may lie in too
	SecurityGroups []string          // of new ENIs; none: those of the node's primary ENI
	Tags           map[string]string // of new ENIs
	Prefixes       bool              // aws: IPv4 addresses come as /28 prefixes
	CrossSubnet    bool              // baidu, sim: an operator alone; ENIs carry addresses of other subnets of their zone
	MaxENIs        int               // baidu: on the instance, the primary ENI among them, 0 is what the API says
	MaxIPsPerENI   int               // baidu: of each family, the primary among them, 0 is what the API says

	Describe    time.Duration // between two describes where nothing asks for one, 0 is Config.Resync; see Config.DescribeEvery
	CallsPerSec int           // long-term rate of calls of this node
	CallsBurst  int           // calls that may come at once
	Concurrent  int           // calls under way at once
	Timeout     time.Duration
}

// MaxPods is how many pods the node may run.
type MaxPods struct {
	Fixed         int    // from the file, 0: look it up
	KubeletConfig string // path of kubelet's own configuration file, "" for the usual places
}

// Kubernetes is whether the node belongs to a cluster, and what the agent is to it.
type Kubernetes struct {
	Enabled    Switch
	Kubeconfig string        // path of a file that says where the API server is, "" for the pod's own account
	Health     health.Config // when the cluster is told that the node can't give its pods addresses

	DRA           bool   // the node's ENIs are devices, of which the scheduler reserves addresses
	KubeletFolder string // the kubelet's, in which it finds plugins
}

// Switch is a choice that may be left to what is found on the node.
type Switch uint8

// The positions of a switch.
const (
	Auto Switch = iota
	Off
	On
)

// Default returns the configuration of an empty file. It is not valid: two keys have no default,
// the VPC's ranges, which SNAT needs, and the simulated cloud's endpoint.
func Default() Config {
	return Config{
		Cache: config.DefaultCachePath,
		State: "/run/enipool/agent.json",
		Settings: ipam.Settings{Routing: ipam.Map, Firewall: ipam.Nftables, SNAT: true, MarkMask: ipam.DefaultMarkMask,
			CoolDown: 30 * time.Second, Families: []eni.Family{eni.IPv4}},
		AnyFirewall: true, FastPath: Off,
		Cloud:      Cloud{Provider: Sim, CallsPerSec: 5, CallsBurst: 10, Concurrent: 5, Timeout: 30 * time.Second},
		Pool:       pool.Config{Mode: pool.Batch, Scale: scale.Default(), Multiple: 1, MinAllocate: 1, PreAllocate: 1},
		Kubernetes: Kubernetes{Health: health.Default(), KubeletFolder: "/var/lib/kubelet"},
		Resync:     time.Minute, Settle: 10 * time.Second, OrphanAge: time.Minute, LeakAge: 10 * time.Minute,
		Listen: "127.0.0.1:9809", LogLevel: slog.LevelInfo, LogFormat: "text",
	}
}

// Parse reads a configuration file; conf/agent.yaml explains every key. All errors
// are reported, each with its key.
func Parse(text []byte) (Config, error) {
	file, err := keys.Split(text, sections...)
	if err != nil {
		return Config{}, err
	}
	parsed := &reader{Reader: file}
	c := Default()
	parsed.Set(allKeys(&c))
	parsed.deriveRest(&c)
	parsed.checkTogether(&c)
	if err := parsed.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// SpareDescribe is Cloud.Describe where the file names a real cloud and no cloud.describe: 1,000
// nodes that describe every minute use most of an account's rate.
const SpareDescribe = 5 * time.Minute

// DescribeEvery is how often the cloud is asked for the node's ENIs where nothing
// asks for it sooner.
func (c Config) DescribeEvery() time.Duration {
	if c.Cloud.Describe == 0 {
		return c.Resync
	}
	return c.Cloud.Describe
}

// DescribeQuiet is how long that becomes where nothing changes, 0 for no longer. 5,000 nodes that
// describe every five minutes use nearly all that an account of AWS has, and twice that is how late they
// notice what others took away. A shorter cloud.describe is never lengthened: somebody chose it.
func (c Config) DescribeQuiet() time.Duration {
	if c.Cloud.Describe < SpareDescribe {
		return 0
	}
	return min(2*c.Cloud.Describe, time.Hour)
}

// Reload returns what the next configuration is to an agent that runs with this one: keys
// that count when the agent is started again are what they were, and changed names those of
// them that the next one has otherwise.
func (c Config) Reload(next Config) (reloaded Config, changed []string) {
	changed = keys.Reload(allKeys(&c), allKeys(&next))
	return next, changed
}
