package agentconf

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/enipool/enipool/pkg/eni"
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
)

// allKeys returns all keys of the file; their values lie in c. A line of the table is a key: its
// kind with its bounds, its unit, whether a change counts at once, and since which release
// it is known.
func allKeys(conf *Config) []key {
	return slices.Concat(nodeKeys(conf), settingKeys(conf), cloudKeys(&conf.Cloud), kubeKeys(&conf.Kubernetes), sizeKeys(&conf.Pool.Scale), kpaKeys(&conf.Pool.Scale), poolKeys(&conf.Pool))
}

func nodeKeys(conf *Config) []key {
	return []key{
		singleKey("node", "a name without blanks of at most 253 bytes", func(text string) bool {
			conf.Node = text
			return len(text) <= 253 && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
		}).at(textAt(&conf.Node)).of(rule{"type": []string{"string", "number", "boolean", "null"}, "maxLength": 253, "pattern": "^\\S*$"}).
			restart(release1, "The name that the cloud and people know the node by; not named, NODE_NAME of the agent's environment, else the host's name."),
		fileKey("cache", &conf.Cache).restart(release1, "The node cache, where the plugin finds its addresses: cachePath of the network configuration must be the same."),
		fileKey("state", &conf.State).restart(release1, "The agent's own file: what it remembers over a restart. The last configuration that was right is kept with .good behind its name, in /var/lib where it lies in /run."),
		numberKey("maxPods", &conf.MaxPods.Fixed, 0, mostPods).in("pods").live(release1, "How many pods the node may run, which limits the pool; 0: what the Node object says, else what the kubelet has, else 110."),
		fileKey("kubeletConfig", &conf.MaxPods.KubeletConfig).live(release1, "The kubelet's configuration file, where its command line and the usual places don't tell."),
		choiceKey("fastPath", &conf.FastPath, choice[Switch]{"auto", Auto}, choice[Switch]{"off", Off}).
			live(unreleased, "Whether packets of established connections may pass the node past iptables and nftables: auto, where the kernel can and nobody else decides about them; or off."),
		durationKey("resync", &conf.Resync, 100*time.Millisecond, time.Hour).live(release1, "How often cloud, kernel and cache are compared completely and repaired."),
		durationKey("settle", &conf.Settle, 0, 10*time.Minute).live(release1, "How long the cloud may go on showing what was before a call: the consistency window."),
		durationKey("orphanAge", &conf.OrphanAge, 0, 24*time.Hour).live(release1, "How long the address of a sandbox that is provably gone waits for its DEL before the agent takes it back."),
		durationKey("leakAge", &conf.LeakAge, time.Second, 24*time.Hour).live(release1, "How long an ENI of this node must be attached nowhere before it is deleted as leaked; at least settle plus cloud.timeout."),
		singleKey("listen", `an IP address (or localhost) and a port like "127.0.0.1:9809", or "" for none`, func(text string) bool {
			conf.Listen = text
			return text == "" || validListen(text)
		}).at(textAt(&conf.Listen)).of(rule{"type": []string{"string", "null"}, "pattern": "^(.+:[0-9]+)?$"}).
			restart(release1, "Where /metrics, /healthz and /readyz are served; \"\" for nowhere."),
		flagKey("profile", &conf.Profile).restart(release1, "Whether pprof is served there too."),
		choiceKey("logLevel", &conf.LogLevel, choice[slog.Level]{"debug", slog.LevelDebug}, choice[slog.Level]{"info", slog.LevelInfo},
			choice[slog.Level]{"warn", slog.LevelWarn}, choice[slog.Level]{"error", slog.LevelError}).
			live(release1, "The least important lines that the log has."),
		choiceKey("logFormat", &conf.LogFormat, choice[string]{"text", "text"}, choice[string]{"json", "json"}).
			restart(release1, "How the log's lines are written."),
	}
}

func settingKeys(conf *Config) []key {
	settings := &conf.Settings
	var families []eni.Family
	at := listPlace(&settings.Families)
	at.shown = func() any {
		var names []string
		for _, f := range settings.Families {
			names = append(names, f.String())
		}
		return names
	}
	return []key{
		choiceKey("routing", &settings.Routing, choice[ipam.Routing]{"map", ipam.Map}, choice[ipam.Routing]{"rule", ipam.Rule}).
			live(release1, "How a pod's packets find their ENI: map, one nftables map from address to ENI; or rule, one ip rule per pod, for kernels without nftables."),
		singleKey("firewall", "auto, nftables or iptables", func(text string) (ok bool) {
			if conf.AnyFirewall = text == "auto"; conf.AnyFirewall {
				return true
			}
			var err error
			settings.Firewall, err = ipam.ParseFirewall(text)
			return err == nil
		}).at(singlePlace(&conf.AnyFirewall, func() any { return conf.firewallText() }), singlePlace(&settings.Firewall, nil)).
			of(rule{"enum": []any{"auto", ipam.Nftables.String(), ipam.Iptables.String(), nil}}).
			live(release1, "The packet filter that holds SNAT and connection marks; auto: nftables where it works."),
		listKey("vpcCIDRs", "a range like 10.0.0.0/16, without host bits", func(text string) bool {
			cidr, err := netip.ParsePrefix(text)
			settings.VPC = append(settings.VPC, cidr)
			return err == nil && cidr == cidr.Masked()
		}).at(listPlace(&settings.VPC)).of(rule{"type": []string{"array", "null"}, "items": rule{"type": "string", "pattern": "^[0-9a-fA-F.:]+/[0-9]+$"}}).
			live(release1, "The VPC's ranges, without host bits: pods keep their own address towards these. Needed where snat is true."),
		flagKey("snat", &settings.SNAT).live(release1, "Whether pods reach the world outside vpcCIDRs with the node's own address."),
		durationKey("coolDown", &settings.CoolDown, 0, time.Hour).live(release1, "How long a released address cools down before another pod may get it."),
		maskKey("markMask", &settings.MarkMask).live(release1, "The eight bits of packet and connection marks that are enipool's."),
		listKey("families", "ipv4 or ipv6", func(text string) bool {
			for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
				if text == f.String() && !slices.Contains(families, f) {
					families = append(families, f)
					slices.Sort(families)
					settings.Families = families
					return true
				}
			}
			return false
		}).at(at).of(rule{"type": []string{"array", "null"}, "uniqueItems": true, "items": rule{"enum": []any{eni.IPv4.String(), eni.IPv6.String()}}}).
			restart(release1, "What each pod gets: ipv4, ipv6, or both from the same ENI."),
	}
}

// firewallText is what the key says.
func (c *Config) firewallText() string {
	if c.AnyFirewall {
		return "auto"
	}
	return c.Settings.Firewall.String()
}

func kubeKeys(k *Kubernetes) []key {
	return []key{
		choiceKey("kubernetes.enabled", &k.Enabled, choice[Switch]{"auto", Auto}, choice[Switch]{"true", On}, choice[Switch]{"false", Off}).
			restart(release1, "Whether the agent asks the API server for the node's pods and tells it when the node has no addresses left; auto: with a kubeconfig, or in a pod with a service account."),
		fileKey("kubernetes.kubeconfig", &k.Kubeconfig).restart(release1, "A kubeconfig file, where the agent does not run in a pod of the cluster."),
		flagKey("kubernetes.taint", &k.Health.Taint).live(release1, "Whether a node that can't give its pods addresses gets a NoSchedule taint."),
		durationKey("kubernetes.faultGrace", &k.Health.Grace, time.Second, time.Hour).live(release1, "How long pods lack addresses before the node is faulty."),
		durationKey("kubernetes.faultQuiet", &k.Health.Quiet, time.Second, time.Hour).live(release1, "How long all must be well before the node is not faulty any more."),
	}
}
