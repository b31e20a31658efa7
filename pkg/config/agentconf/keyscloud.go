package agentconf

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

func cloudKeys(cloud *Cloud) []key {
	return slices.Concat(cloudPlaceKeys(cloud), cloudENIKeys(cloud), cloudPaceKeys(cloud))
}

// cloudPlaceKeys say which cloud it is, and where the node is in it.
func cloudPlaceKeys(cloud *Cloud) []key {
	return []key{
		choiceKey("cloud.provider", &cloud.Provider, choice[string]{Sim, Sim}, choice[string]{AWS, AWS}, choice[string]{Baidu, Baidu},
			choice[string]{formerBaidu, Baidu}).wants("sim, aws or baidu").
			restart(release1, "Which cloud: sim, a VPC simulated on this machine; aws, Amazon EC2; baidu, Baidu AI Cloud."),
		singleKey("cloud.endpoint", wantEndpoint, func(text string) bool {
			cloud.Endpoint = text
			return true // what it must be depends on the provider: see checkCloud
		}).at(textAt(&cloud.Endpoint)).of(rule{"type": []string{"string", "null"}}).
			restart(release1, "Where it answers. sim: unix:// and a path, or http:// with a loopback address and a port; aws, baidu: nothing, or the URL of the API."),
		singleKey("cloud.metadata", wantURL, func(text string) bool {
			cloud.Metadata = text
			return text == "" || validURL(text)
		}).at(textAt(&cloud.Metadata)).of(rule{"type": []string{"string", "null"}, "pattern": "^(https?://.+)?$"}).
			restart(release1, "aws, baidu: the URL of the instance metadata, where it is not http://169.254.169.254."),
		wordKey("cloud.region", &cloud.Region).restart(release1, "aws, baidu: the region; not named, what the instance metadata says."),
		wordKey("cloud.instance", &cloud.Instance).restart(release1, "aws, baidu: the ID of the node's instance; not named, what the instance metadata says."),
		singleKey("cloud.kind", "bcc, bbc or ebc", func(text string) bool {
			cloud.Kind = text
			return slices.Contains([]string{"", "bcc", "bbc", "ebc"}, text)
		}).at(textAt(&cloud.Kind)).of(rule{"enum": []any{"", "bcc", "bbc", "ebc", nil}}).
			restart(unreleased, "baidu: the kind of the instance; not named, what the instance metadata says."),
		wordKey("cloud.vpc", &cloud.VPC).restart(unreleased, "baidu: the ID of the instance's VPC; not named, what the instance metadata says."),
		wordKey("cloud.zone", &cloud.Zone).restart(unreleased, "baidu: the instance's zone, zoneA or cn-bj-a; not named, what the instance metadata says."),
	}
}

// cloudENIKeys say what the node's ENIs are like.
func cloudENIKeys(cloud *Cloud) []key {
	return []key{
		numberKey("cloud.maxENIs", &cloud.MaxENIs, 0, eni.MaxIndex+1).in("ENIs").restart(unreleased, "baidu: how many ENIs the instance may have, its own among them; 0: what the API says."),
		numberKey("cloud.maxIPsPerENI", &cloud.MaxIPsPerENI, 0, mostPerENI).in("addresses").
			restart(unreleased, "baidu: how many addresses of each family an ENI may have, its primary among them; 0: what the API says."),
		singleKey("cloud.cluster", "at most 32 letters, digits, dots, dashes and underscores", func(text string) bool {
			cloud.Cluster = text
			return len(text) <= 32 && strings.Trim(text, wordBytes+".") == ""
		}).at(textAt(&cloud.Cluster)).of(rule{"type": []string{"string", "number", "boolean", "null"}, "pattern": "^[a-zA-Z0-9._-]{0,32}$"}).
			restart(release1, "aws, baidu: a name that all nodes of a cluster share: with it ENIs that nodes left behind are found and deleted."),
		wordsKey("cloud.subnets", &cloud.Subnets).restart(release1, "aws, baidu: the subnets that new ENIs may lie in, by ID."),
		tagsKey("cloud.subnetTags", &cloud.SubnetTags).restart(release1, "aws, baidu: new ENIs may lie in the subnets that have all of these tags, too."),
		wordsKey("cloud.securityGroups", &cloud.SecurityGroups).restart(release1, "aws, baidu: security groups of new ENIs, by ID; none: those of the node's primary ENI."),
		tagsKey("cloud.tags", &cloud.Tags).restart(release1, "aws, baidu: tags of new ENIs, beside those by which the agent knows them."),
		flagKey("cloud.prefixes", &cloud.Prefixes).restart(release1, "aws: IPv4 addresses come as prefixes of 16. Drain a node before this is turned off."),
	}
}

// cloudPaceKeys say how hard the cloud is called.
func cloudPaceKeys(cloud *Cloud) []key {
	return []key{
		durationKey("cloud.describe", &cloud.Describe, 100*time.Millisecond, time.Hour).noDefault().
			live(release1, "How often the cloud is asked for the node's ENIs where nothing asks sooner; not named, resync with provider sim and 5m with aws and baidu. From 5m on the first describe of a restarted agent comes within 10m."),
		numberKey("cloud.callsPerSecond", &cloud.CallsPerSec, 1, mostCalls).in("calls per second").live(release1, "This node's budget of calls in the long run: for a node that goes wrong, not to share an account's rate."),
		numberKey("cloud.callsBurst", &cloud.CallsBurst, 1, mostCalls).in("calls").live(release1, "Calls that may come at once after a quiet time."),
		numberKey("cloud.concurrent", &cloud.Concurrent, 1, mostAtOnce).in("calls").live(release1, "Calls that may be under way at the same time."),
		durationKey("cloud.timeout", &cloud.Timeout, time.Second, 5*time.Minute).live(release1, "When a call counts as lost."),
	}
}

const (
	wantEndpoint = "unix:// and an absolute path, or http:// with a loopback address and a port, like http://127.0.0.1:9810"
	wantURL      = "https:// and a host, or http:// and a loopback or link-local address"
)

// validEndpoint takes only endpoints on this machine, because the simulated VPC checks no rights.
func validEndpoint(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	switch u.Scheme {
	case "unix":
		return u.Host == "" && path.IsAbs(u.Path) && path.Clean(u.Path) != "/"
	case "http":
		at, err := netip.ParseAddrPort(strings.Replace(u.Host, "localhost:", "127.0.0.1:", 1))
		return err == nil && at.Addr().IsLoopback() && at.Port() > 0 && (u.Path == "" || u.Path == "/")
	}
	return false
}

// validURL takes only TLS where others could listen: requests to a real cloud carry credentials.
func validURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return false
	}
	at, err := netip.ParseAddr(strings.Replace(u.Hostname(), "localhost", "127.0.0.1", 1))
	near := err == nil && (at.IsLoopback() || at.IsLinkLocalUnicast() || at == netip.MustParseAddr("fd00:ec2::254"))
	return u.Scheme == "https" || u.Scheme == "http" && near
}

// validListen takes only an explicit address: ":9809" would open the port on all addresses of the
// node without saying so.
func validListen(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, errHost := netip.ParseAddr(host)
	_, errPort := strconv.ParseUint(port, 10, 16)
	return errPort == nil && (errHost == nil || host == "localhost")
}
