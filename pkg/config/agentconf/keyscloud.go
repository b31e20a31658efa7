package agentconf

import (
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/eni"
)

func cloudKeys(cloud *Cloud) []keys.Key {
	return slices.Concat(cloudPlaceKeys(cloud), cloudENIKeys(cloud), cloudPaceKeys(cloud))
}

// cloudPlaceKeys say which cloud it is, and where the node is in it.
func cloudPlaceKeys(cloud *Cloud) []keys.Key {
	return []keys.Key{
		keys.Choice("cloud.provider", &cloud.Provider, keys.Named(Sim, Sim), keys.Named(AWS, AWS), keys.Named(Baidu, Baidu),
			keys.Named(formerBaidu, Baidu), keys.Named(Operator, Operator)).Wants("sim, aws, baidu or operator").
			Restart(release1, "Which cloud: sim, a VPC simulated on this machine; aws, Amazon EC2; baidu, Baidu AI Cloud; operator, none: enipool-operator calls it for the nodes of the cluster, and the keys of the cloud count for nothing here."),
		keys.Single("cloud.endpoint", keys.WantEndpoint, func(text string) bool {
			cloud.Endpoint = text
			return true // what it must be depends on the provider: see checkCloud
		}).At(keys.TextAt(&cloud.Endpoint)).Of(keys.Rule{"type": []string{"string", "null"}}).
			Restart(release1, "Where it answers. sim: unix:// and a path, or http:// with a loopback address and a port; aws, baidu: nothing, or the URL of the API."),
		keys.URL("cloud.metadata", &cloud.Metadata).
			Restart(release1, "aws, baidu: the URL of the instance metadata, where it is not http://169.254.169.254."),
		keys.Word("cloud.region", &cloud.Region).Restart(release1, "aws, baidu: the region; not named, what the instance metadata says."),
		keys.Word("cloud.instance", &cloud.Instance).Restart(release1, "aws, baidu: the ID of the node's instance; not named, what the instance metadata says."),
		keys.Single("cloud.kind", "bcc, bbc or ebc", func(text string) bool {
			cloud.Kind = text
			return slices.Contains([]string{"", "bcc", "bbc", "ebc"}, text)
		}).At(keys.TextAt(&cloud.Kind)).Of(keys.Rule{"enum": []any{"", "bcc", "bbc", "ebc", nil}}).
			Restart(unreleased, "baidu: the kind of the instance; not named, what the instance metadata says."),
		keys.Word("cloud.vpc", &cloud.VPC).Restart(unreleased, "baidu: the ID of the instance's VPC; not named, what the instance metadata says."),
		keys.Word("cloud.zone", &cloud.Zone).Restart(unreleased, "baidu: the instance's zone, zoneA or cn-bj-a; not named, what the instance metadata says."),
	}
}

// cloudENIKeys say what the node's ENIs are like.
func cloudENIKeys(cloud *Cloud) []keys.Key {
	return []keys.Key{
		keys.Number("cloud.maxENIs", &cloud.MaxENIs, 0, eni.MaxIndex+1).In("ENIs").Restart(unreleased, "baidu: how many ENIs the instance may have, the primary ENI among them; 0: what the API says."),
		keys.Number("cloud.maxIPsPerENI", &cloud.MaxIPsPerENI, 0, mostPerENI).In("addresses").
			Restart(unreleased, "baidu: how many addresses of each family an ENI may have, its primary among them; 0: what the API says."),
		keys.Single("cloud.cluster", "at most 32 letters, digits, dots, dashes and underscores", func(text string) bool {
			cloud.Cluster = text
			return len(text) <= 32 && strings.Trim(text, keys.WordBytes+".") == ""
		}).At(keys.TextAt(&cloud.Cluster)).Of(keys.Rule{"type": []string{"string", "number", "boolean", "null"}, "pattern": "^[a-zA-Z0-9._-]{0,32}$"}).
			Restart(release1, "aws, baidu: a name that all nodes of a cluster share: with it ENIs that nodes left behind are found and deleted."),
		keys.Words("cloud.subnets", &cloud.Subnets).Restart(release1, "aws, baidu: the subnets that new ENIs may lie in, by ID."),
		keys.Tags("cloud.subnetTags", &cloud.SubnetTags).Restart(release1, "aws, baidu: new ENIs may lie in the subnets that have all of these tags, too."),
		keys.Words("cloud.securityGroups", &cloud.SecurityGroups).Restart(release1, "aws, baidu: security groups of new ENIs, by ID; none: those of the node's primary ENI."),
		keys.Tags("cloud.tags", &cloud.Tags).Restart(release1, "aws, baidu: tags of new ENIs, beside those by which the agent knows them."),
		keys.Flag("cloud.prefixes", &cloud.Prefixes).Restart(release1, "aws: IPv4 addresses come as prefixes of 16. Turned on, they come where single addresses leave room on ENIs. Drain a node before this is turned off."),
	}
}

// cloudPaceKeys say how hard the cloud is called.
func cloudPaceKeys(cloud *Cloud) []keys.Key {
	return []keys.Key{
		keys.Duration("cloud.describe", &cloud.Describe, 100*time.Millisecond, time.Hour).NoDefault().
			Live(release1, "How often the cloud is asked for the node's ENIs where nothing asks sooner; not named, resync with provider sim and 5m with aws and baidu. From 5m on the first describe of a restarted agent comes within 10m."),
		keys.Number("cloud.callsPerSecond", &cloud.CallsPerSec, 1, mostCalls).In("calls per second").Live(release1, "This node's budget of calls in the long run: for a node that goes wrong, not to share an account's rate."),
		keys.Number("cloud.callsBurst", &cloud.CallsBurst, 1, mostCalls).In("calls").Live(release1, "Calls that may come at once after a quiet time."),
		keys.Number("cloud.concurrent", &cloud.Concurrent, 1, mostAtOnce).In("calls").Live(release1, "Calls that may be under way at the same time."),
		keys.Duration("cloud.timeout", &cloud.Timeout, time.Second, 5*time.Minute).Live(release1, "When a call counts as lost."),
	}
}
