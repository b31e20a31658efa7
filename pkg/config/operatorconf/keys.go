package operatorconf

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/quota"
)

// sections are the keys that have keys of their own.
var sections = []string{"cloud"}

// unreleased is the release that the keys came with.
const unreleased = "unreleased"

// allKeys returns all keys of the file; their values lie in conf. All need a restart: another operator leads meanwhile.
func allKeys(conf *Config) []keys.Key {
	list := slices.Concat(cloudKeys(&conf.Cloud), paceKeys(conf), programKeys(conf))
	for i := range list {
		list[i] = list[i].Restart(unreleased, list[i].Doc)
	}
	return list
}

func cloudKeys(cloud *Cloud) []keys.Key {
	return []keys.Key{
		keys.Choice("cloud.provider", &cloud.Provider, keys.Named(agentconf.Sim, agentconf.Sim), keys.Named(agentconf.AWS, agentconf.AWS),
			keys.Named(agentconf.Baidu, agentconf.Baidu)).About("Which cloud: sim, a VPC simulated on this machine; aws, Amazon EC2; baidu, Baidu AI Cloud."),
		keys.Single("cloud.endpoint", keys.WantEndpoint, func(text string) bool {
			cloud.Endpoint = text
			return true // what it must be depends on the provider
		}).At(keys.TextAt(&cloud.Endpoint)).Of(keys.Rule{"type": []string{"string", "null"}}).
			About("Where it answers. sim: unix:// and a path, or http:// with a loopback address and a port; aws, baidu: nothing, or the URL of the API."),
		keys.URL("cloud.metadata", &cloud.Metadata).About("aws, baidu: the URL of the instance metadata, where it is not http://169.254.169.254."),
		keys.Word("cloud.region", &cloud.Region).About("aws, baidu: the region; not named, what the instance metadata says."),
		keys.Word("cloud.instance", &cloud.Instance).About("The ID of an instance of the VPC, the operator's own or another; not named, what the instance metadata says."),
		keys.Word("cloud.vpc", &cloud.VPC).About("baidu: the ID of the VPC; not named, what the instance metadata says."),
		keys.Single("cloud.cluster", "at most 32 letters, digits, dots, dashes and underscores", func(text string) bool {
			cloud.Cluster = text
			return len(text) <= 32 && strings.Trim(text, keys.WordBytes+".") == ""
		}).At(keys.TextAt(&cloud.Cluster)).Of(keys.Rule{"type": []string{"string", "number", "boolean", "null"}, "pattern": "^[a-zA-Z0-9._-]{0,32}$"}).
			About("The name of the cluster, the same as in the agents' configuration."),
		keys.Words("cloud.subnets", &cloud.Subnets).About("The subnets that new ENIs may lie in, by ID."),
		keys.Tags("cloud.subnetTags", &cloud.SubnetTags).About("New ENIs may lie in the subnets that have all of these tags, too."),
		keys.Words("cloud.securityGroups", &cloud.SecurityGroups).About("aws, baidu: security groups of new ENIs, by ID; none: those of the node's primary ENI."),
		keys.Tags("cloud.tags", &cloud.Tags).About("aws, baidu: tags of new ENIs, beside those by which the operator knows them."),
		keys.Flag("cloud.prefixes", &cloud.Prefixes).About("aws: IPv4 addresses come as prefixes of 16."),
		keys.Flag("cloud.crossSubnet", &cloud.CrossSubnet).About("baidu, sim: ENIs carry addresses of topologies' subnets though they lie in others; on Baidu the account has to be on the white list for that."),
		keys.Duration("cloud.describe", &cloud.Describe, time.Second, time.Hour).About("How often the ENIs of all nodes are described."),
		keys.Duration("cloud.timeout", &cloud.Timeout, time.Second, LeaseDuration-3*time.Second).
			About("When a request counts as lost. It ends before the lease does, which is held for 15s: an operator that was stopped sends nothing late."),
	}
}

// paceKeys say how hard the account is used, and how careful the operator is about calls whose outcome it does not know.
func paceKeys(conf *Config) []keys.Key {
	return []keys.Key{
		keys.Families("families", &conf.Families).About("What pods get: ipv4, ipv6, or both from the same ENI; the agents' configuration says the same."),
		keys.Flag("observe", &conf.Observe).About("Look and tell, and call nothing that changes: to see what the operator would have to do."),
		keys.Percent("share", &conf.Share, 1, 100).About("The part of the account's rate that the operator uses of each action; the rest is for people and other programs."),
		budgetKey("budget", &conf.Budget).About("What the operator may use of single actions, where the account has other limits than the cloud's usual ones."),
		keys.Duration("settle", &conf.Settle, time.Second, 10*time.Minute).About("How long the cloud may go on showing what was before a call: the consistency window."),
		keys.Duration("fence", &conf.Fence, time.Minute, time.Hour).About("How long an address that a lost call may still take away is not used."),
		keys.Duration("leakAge", &conf.LeakAge, time.Minute, 24*time.Hour).About("How old an ENI of the cluster is that is attached nowhere before it is deleted."),
		keys.Flag("topologies", &conf.Topologies).About("Classify pods that have the gate enipool.io/topology, and bring nodes the addresses that these have by their topology. Before it is turned off again the gates have to be gone: pods would wait for ever."),
	}
}

// budgetKey is limits by action.
func budgetKey(name string, into *map[string]quota.Limit) keys.Key {
	const want = "actions with their limits like {CreateNetworkInterface: {burst: 300, perSecond: 15}}"
	k := keys.Key{Name: name, Want: want, IsList: true, Set: func(v any) (faults []keys.Fault) {
		actions, ok := v.(map[string]any)
		if !ok {
			return []keys.Fault{{Value: v}}
		}
		*into = map[string]quota.Limit{}
		for _, action := range slices.Sorted(maps.Keys(actions)) {
			limit, wrong := limitOf(actions[action])
			if wrong == nil && action == "" {
				wrong = &keys.Fault{Value: actions[action]}
			}
			if wrong != nil {
				wrong.At = "[" + action + "]" + wrong.At
				faults = append(faults, *wrong)
				continue
			}
			(*into)[action] = limit
		}
		return faults
	}}
	return k.At(keys.Place{Into: into, Same: func(other any) bool { return maps.Equal(*into, *other.(*map[string]quota.Limit)) },
		Take: func(other any) { *into = *other.(*map[string]quota.Limit) }, Shown: func() any { return *into }}).
		Of(keys.Rule{"type": []string{"object", "null"}, "propertyNames": keys.Rule{"minLength": 1}, "additionalProperties": keys.Rule{
			"type": "object", "additionalProperties": false, "required": []string{"burst", "perSecond"}, "properties": keys.Rule{
				"burst":     keys.Rule{"type": "integer", "minimum": 1, "maximum": mostBurst},
				"perSecond": keys.Rule{"type": "number", "exclusiveMinimum": 0, "maximum": mostBurst}}}})
}

// mostBurst only keeps nonsense out.
const mostBurst = 100_000

// limitOf reads one action's limit, or returns what is wrong of it.
func limitOf(v any) (limit quota.Limit, wrong *keys.Fault) {
	said, isMap := v.(map[string]any)
	burst, hasBurst := keys.Scalar(said["burst"])
	rate, hasRate := keys.Scalar(said["perSecond"])
	if !isMap || !hasBurst || !hasRate || len(said) != 2 {
		return limit, &keys.Fault{Value: v}
	}
	var err error
	if limit.Burst, err = strconv.Atoi(burst); err != nil || limit.Burst < 1 || limit.Burst > mostBurst {
		return limit, &keys.Fault{At: ".burst", Value: said["burst"], Want: fmt.Sprintf("a whole number from 1 to %d, in ", mostBurst)}
	}
	if limit.PerSecond, err = strconv.ParseFloat(rate, 64); err != nil || !(limit.PerSecond > 0 && limit.PerSecond <= mostBurst) {
		return limit, &keys.Fault{At: ".perSecond", Value: said["perSecond"], Want: fmt.Sprintf("a number above 0 and at most %d, in ", mostBurst)}
	}
	return limit, nil
}

func programKeys(conf *Config) []keys.Key {
	return []keys.Key{
		keys.Single("namespace", "the name of a namespace", func(text string) bool {
			conf.Namespace = text
			return len(text) <= 63 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		}).At(keys.TextAt(&conf.Namespace)).Of(keys.Rule{"type": []string{"string", "number", "boolean", "null"}, "pattern": "^[a-z0-9-]{0,63}$"}).
			About("The namespace of the lease; not named, that of the pod, POD_NAMESPACE of its environment, else kube-system."),
		keys.File("kubeconfig", &conf.Kubeconfig).About("A kubeconfig file, where the operator does not run in a pod of the cluster."),
		keys.Listen("listen", &conf.Listen).About(fmt.Sprintf("Where /healthz, /readyz and a page for browsers are served; %q for nowhere.", "")),
		keys.Flag("profile", &conf.Profile).About("Whether pprof is served there too."),
		keys.Choice("logLevel", &conf.LogLevel, keys.Named("debug", slog.LevelDebug), keys.Named("info", slog.LevelInfo), keys.Named("warn", slog.LevelWarn),
			keys.Named("error", slog.LevelError)).About("The least important lines that the log has."),
		keys.Choice("logFormat", &conf.LogFormat, keys.Named("text", "text"), keys.Named("json", "json")).About("How the log's lines are written."),
	}
}
