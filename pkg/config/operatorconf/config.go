// Package operatorconf reads the configuration of enipool-operator. conf/operator.yaml explains every key.
package operatorconf

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/quota"
)

// Config is all that the file says, with the defaults for what it does not say.
type Config struct {
	Families []eni.Family // that pods get addresses of
	Cloud    Cloud
	Observe  bool                   // look and tell, and call nothing that changes
	Share    int                    // percent of the account's rates
	Budget   map[string]quota.Limit // of actions whose buckets are other than the cloud's usual ones
	Settle   time.Duration          // how long the cloud may go on showing what was before a call
	Fence    time.Duration          // how long a call of which nobody knows the outcome may still take effect
	LeakAge  time.Duration          // how old an ENI is before it is deleted that nobody finishes

	Topologies bool // gated pods are classified

	Namespace  string // of the lease, "" for that of the pod
	Kubeconfig string // path of a file, "" for the pod's own account

	Listen    string
	Profile   bool
	LogLevel  slog.Level
	LogFormat string // text or json
}

// Cloud is where the nodes' ENIs are, and what they are like.
type Cloud struct {
	Provider string // as in agentconf
	Endpoint string
	Metadata string // URL of the operator's own instance metadata
	Region   string
	Instance string // the operator's own, "" for what the metadata says
	VPC      string // Baidu's

	Cluster        string
	Subnets        []string
	SubnetTags     map[string]string
	SecurityGroups []string
	Tags           map[string]string
	Prefixes       bool
	CrossSubnet    bool // Baidu's: the account is on the white list for addresses of other subnets

	Describe time.Duration
	Timeout  time.Duration
}

// LeaseDuration is how long an operator leads without a renewal of its lease. A request ends before it does.
const LeaseDuration = 15 * time.Second

// Default returns what the operator does when the file says nothing.
func Default() Config {
	return Config{
		Families: []eni.Family{eni.IPv4},
		Cloud:    Cloud{Provider: agentconf.Sim, Describe: 5 * time.Minute, Timeout: 5 * time.Second},
		Share:    80, Settle: 10 * time.Second, Fence: 6 * time.Minute, LeakAge: 10 * time.Minute,
		Listen: "127.0.0.1:9810", LogLevel: slog.LevelInfo, LogFormat: "text",
	}
}

// Lease returns the rules by which an operator leads.
func (c Config) Lease() order.Lease {
	return order.Lease{Duration: LeaseDuration, Settle: c.Settle, Fence: c.Fence}
}

// Parse reads a configuration file. All errors are reported, each with its key.
func Parse(text []byte) (Config, error) {
	file, err := keys.Split(text, sections...)
	if err != nil {
		return Config{}, err
	}
	c := Default()
	file.Set(allKeys(&c))
	checkTogether(file, &c)
	if err := file.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// checkTogether judges the keys together. Each error names the key to change.
func checkTogether(file *keys.Reader, c *Config) {
	if file.AllSound("cloud", "cloud.provider", "cloud.endpoint") {
		switch sim := c.Cloud.Provider == agentconf.Sim; {
		case sim && c.Cloud.Endpoint == "": // who has forgotten the provider learns of it here
			file.AddError("cloud.endpoint", "", keys.WantEndpoint+"; this is the place of the simulated cloud that cloud.provider sim, the default, names; aws and baidu need none")
		case sim && !keys.IsEndpoint(c.Cloud.Endpoint):
			file.AddError("cloud.endpoint", c.Cloud.Endpoint, keys.WantEndpoint)
		case !sim && c.Cloud.Endpoint != "" && !keys.IsURL(c.Cloud.Endpoint):
			file.AddError("cloud.endpoint", c.Cloud.Endpoint, keys.WantURL)
		}
	}
	if file.AllSound("cloud.provider", "cloud.cluster") {
		checkCluster(file, c.Cloud)
	}
	if len(c.Cloud.Subnets)+len(c.Cloud.SubnetTags) == 0 && file.AllSound("cloud.subnets", "cloud.subnetTags") {
		file.AddError("cloud.subnets", []any{}, "the subnets that new ENIs may lie in, or cloud.subnetTags by which they are found")
	}
	if c.Cloud.Provider == agentconf.Baidu && c.Cloud.Prefixes && file.AllSound("cloud.provider", "cloud.prefixes") {
		file.AddError("cloud.prefixes", c.Cloud.Prefixes, "false with provider baidu, whose ENIs take no prefixes")
	}
	if c.Cloud.Provider == agentconf.AWS && c.Cloud.CrossSubnet && file.AllSound("cloud.provider", "cloud.crossSubnet") {
		file.AddError("cloud.crossSubnet", c.Cloud.CrossSubnet, "false with provider aws, whose ENIs take addresses of their own subnet alone")
	}
	if c.Observe && c.Topologies && file.AllSound("observe", "topologies") {
		// To take a gate off is a change, and a pod of a topology without it would wait on its node for an address that nobody brings.
		file.AddError("topologies", c.Topologies, "false as long as observe is true: an operator that observes takes no gate off and brings no address")
	}
	if least := c.Cloud.Timeout + c.Settle; c.Fence < least && file.AllSound("fence", "settle", "cloud.timeout") {
		file.AddError("fence", keys.ShortDuration(c.Fence), fmt.Sprintf("at least cloud.timeout plus settle, %s", keys.ShortDuration(least)))
	}
}

// example is the cluster's name in the manifests. Clusters that keep it would delete each other's ENIs.
const example = "change-me"

// checkCluster judges the cluster's name.
func checkCluster(file *keys.Reader, c Cloud) {
	switch {
	case c.Cluster == example:
		file.AddError("cloud.cluster", c.Cluster, "the name that cloud.cluster of the agents has, one that no other cluster of the account has: this one only stands in the example")
	case c.Cluster == "" && c.Provider != agentconf.Sim:
		file.AddError("cloud.cluster", "", "the cluster's name, as the agents have it: by it the operator knows which ENIs are its own")
	}
}

// Schema returns the JSON schema of the file.
func Schema() []byte {
	c := Default()
	return keys.Schema("enipool-operator", "Made from the table of keys by `make keys`. operator.yaml explains every key.", allKeys(&c), sections...)
}
