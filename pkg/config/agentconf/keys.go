package agentconf

import (
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/ipam"
)

// Bounds that only keep nonsense out.
const (
	mostAddresses = 1 << 16
	mostPercent   = 10_000
	mostGrow      = 100_000 // no limit
	mostPods      = 10_000
	mostCalls     = 1000
	mostAtOnce    = 64
	mostPerENI    = 1024
	mostPlaces    = 1024
)

// namespaceName is what the API server takes as the name of a namespace.
var namespaceName = regexp.MustCompile("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")

// The releases that keys came with.
const (
	release1   = "9295a34" // the previous one; see scripts/previous.sh
	unreleased = "unreleased"
)

// sections are the keys that have keys of their own.
var sections = []string{"cloud", "kubernetes", "pool"}

// allKeys returns all keys of the file; their values lie in c. A line of the table is a key: its
// kind with its bounds, its unit, whether a change counts at once, and since which release
// it is known.
func allKeys(conf *Config) []keys.Key {
	return slices.Concat(nodeKeys(conf), settingKeys(conf), cloudKeys(&conf.Cloud), kubeKeys(&conf.Kubernetes), sizeKeys(&conf.Pool.Scale), kpaKeys(&conf.Pool.Scale), poolKeys(&conf.Pool))
}

// maskKey is bits of the packet mark.
func maskKey(name string, into *uint32) keys.Key {
	const want = "eight bits in a row without 0x4000 and 0x8000, like 0x000000ff"
	k := keys.Key{Name: name, Want: want, Set: func(v any) []keys.Fault {
		text, ok := keys.Scalar(v)
		bits, err := strconv.ParseUint(text, 0, 32)
		if *into = uint32(bits); ok && err == nil && ipam.ValidMarkMask(*into) == nil {
			return nil
		}
		return []keys.Fault{{Value: v}}
	}}
	return k.At(keys.ValueAt(into, func() any { return fmt.Sprintf("0x%08x", *into) })).
		Of(keys.Rule{"type": []string{"integer", "string", "null"}, "pattern": "^(0[xX][0-9a-fA-F]+|[0-9]+)$"})
}

func nodeKeys(conf *Config) []keys.Key {
	return []keys.Key{
		keys.Single("node", "a name without blanks of at most 253 bytes", func(text string) bool {
			conf.Node = text
			return len(text) <= 253 && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
		}).At(keys.TextAt(&conf.Node)).Of(keys.Rule{"type": []string{"string", "number", "boolean", "null"}, "maxLength": 253, "pattern": "^\\S*$"}).
			Restart(release1, "The name that the cloud and people know the node by; not named, NODE_NAME of the agent's environment, else the host's name."),
		keys.File("cache", &conf.Cache).Restart(release1, "The node cache, where the plugin finds its addresses: cachePath of the network configuration must be the same."),
		keys.File("state", &conf.State).Restart(release1, "The agent's own file: what it remembers over a restart. The last configuration that was right is kept with .good behind its name, in /var/lib where it lies in /run; what is to outlast a reboot of what an operator has told with .seen."),
		keys.Number("maxPods", &conf.MaxPods.Fixed, 0, mostPods).In("pods").Live(release1, "How many pods the node may run, which limits the pool; 0: what the Node object says, else what the kubelet has, else 110."),
		keys.File("kubeletConfig", &conf.MaxPods.KubeletConfig).Live(release1, "The kubelet's configuration file, where its command line and the usual places don't tell."),
		keys.Choice("fastPath", &conf.FastPath, keys.Named("auto", Auto), keys.Named("off", Off)).
			Live(unreleased, "Whether packets of established connections may pass the node past iptables and nftables: auto, where the kernel can and nobody else decides about them; or off."),
		keys.Duration("resync", &conf.Resync, 100*time.Millisecond, time.Hour).Live(release1, "How often cloud, kernel and cache are compared completely and repaired."),
		keys.Duration("settle", &conf.Settle, 0, 10*time.Minute).Live(release1, "How long the cloud may go on showing what was before a call: the consistency window."),
		keys.Duration("orphanAge", &conf.OrphanAge, 0, 24*time.Hour).Live(release1, "How long the address of a sandbox that is provably gone waits for its DEL before the agent frees it."),
		keys.Duration("leakAge", &conf.LeakAge, time.Second, 24*time.Hour).Live(release1, "How long an ENI of this node must be attached nowhere before it is deleted as leaked; at least settle plus cloud.timeout. ENIs of nodes that are gone (cloud.cluster) go by the value at the start of the agent."),
		keys.Listen("listen", &conf.Listen).
			Restart(release1, "Where /metrics, /healthz, /readyz and a page for browsers are served; \"\" for nowhere."),
		keys.Flag("profile", &conf.Profile).Restart(release1, "Whether pprof is served there too."),
		keys.Choice("logLevel", &conf.LogLevel, keys.Named("debug", slog.LevelDebug), keys.Named("info", slog.LevelInfo),
			keys.Named("warn", slog.LevelWarn), keys.Named("error", slog.LevelError)).
			Live(release1, "The least important lines that the log has."),
		keys.Choice("logFormat", &conf.LogFormat, keys.Named("text", "text"), keys.Named("json", "json")).
			Restart(release1, "How the log's lines are written."),
	}
}

func settingKeys(conf *Config) []keys.Key {
	settings := &conf.Settings
	return []keys.Key{
		keys.Choice("routing", &settings.Routing, keys.Named("map", ipam.Map), keys.Named("rule", ipam.Rule)).
			Live(release1, "How a pod's packets find their ENI: map, one nftables map from address to ENI; or rule, one ip rule per pod, for kernels without nftables."),
		keys.Single("firewall", "auto, nftables or iptables", func(text string) (ok bool) {
			if conf.AnyFirewall = text == "auto"; conf.AnyFirewall {
				return true
			}
			var err error
			settings.Firewall, err = ipam.ParseFirewall(text)
			return err == nil
		}).At(keys.ValueAt(&conf.AnyFirewall, func() any { return conf.firewallText() }), keys.ValueAt(&settings.Firewall, nil)).
			Of(keys.Rule{"enum": []any{"auto", ipam.Nftables.String(), ipam.Iptables.String(), nil}}).
			Live(release1, "The packet filter that holds SNAT and connection marks; auto: nftables where it works."),
		keys.List("vpcCIDRs", "a range like 10.0.0.0/16, without host bits", func(text string) bool {
			cidr, err := netip.ParsePrefix(text)
			settings.VPC = append(settings.VPC, cidr)
			return err == nil && cidr == cidr.Masked()
		}).At(keys.ListAt(&settings.VPC)).Of(keys.Rule{"type": []string{"array", "null"}, "items": keys.Rule{"type": "string", "pattern": keys.CIDRPattern()}}).
			Live(release1, "The VPC's ranges, without host bits: pods keep their own address towards these. Needed where snat is true."),
		keys.Flag("snat", &settings.SNAT).Live(release1, "Whether pods reach the world outside vpcCIDRs with the node's own address."),
		keys.Duration("coolDown", &settings.CoolDown, 0, time.Hour).Live(release1, "How long a released address cools down before another pod may get it."),
		maskKey("markMask", &settings.MarkMask).Live(release1, "The eight bits of packet and connection marks that are enipool's."),
		keys.Families("families", &settings.Families).
			Restart(release1, "What each pod gets: ipv4, ipv6, or both from the same ENI."),
		keys.List("gatedNamespaces", "the name of a namespace, named once", func(text string) bool {
			once := !slices.Contains(settings.Gated, text)
			settings.Gated = append(settings.Gated, text)
			return once && namespaceName.MatchString(text)
		}).At(keys.ListAt(&settings.Gated)).
			Of(keys.Rule{"type": []string{"array", "null"}, "uniqueItems": true, "items": keys.Rule{"type": "string", "pattern": namespaceName.String()}}).
			Live(unreleased, "Namespaces in which a pod gets only an address that is reserved for it, by the operator or by the agent, where the runtime does not pass the annotations of pods."),
	}
}

// firewallText is what the key says.
func (c *Config) firewallText() string {
	if c.AnyFirewall {
		return "auto"
	}
	return c.Settings.Firewall.String()
}

func kubeKeys(k *Kubernetes) []keys.Key {
	return []keys.Key{
		keys.Choice("kubernetes.enabled", &k.Enabled, keys.Named("auto", Auto), keys.Named("true", On), keys.Named("false", Off)).
			Restart(release1, "Whether the agent asks the API server for the node's pods and tells it when the node has no addresses left; auto: with a kubeconfig, or in a pod with a service account."),
		keys.File("kubernetes.kubeconfig", &k.Kubeconfig).Restart(release1, "A kubeconfig file, where the agent does not run in a pod of the cluster."),
		keys.Flag("kubernetes.taint", &k.Health.Taint).Live(release1, "Whether a node that can't give its pods addresses gets a NoSchedule taint."),
		keys.Duration("kubernetes.faultGrace", &k.Health.Grace, time.Second, time.Hour).Live(release1, "How long pods lack addresses before the node is faulty."),
		keys.Duration("kubernetes.faultQuiet", &k.Health.Quiet, time.Second, time.Hour).Live(release1, "How long all must be well before the node is not faulty any more."),
		keys.Flag("kubernetes.dra", &k.DRA).Restart(unreleased, "Whether the node shows its ENIs to the scheduler as devices of a ResourceSlice, of which ResourceClaims reserve addresses, in place of a resource of the Node. conf/kubernetes/dra has what it takes."),
		keys.File("kubernetes.kubeletFolder", &k.KubeletFolder).Restart(unreleased, "The kubelet's folder, in which it finds the plugin that kubernetes.dra takes."),
	}
}
