package agentconf

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
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

// keys returns all keys of the file; their values go into c.
func keys(c *Config) []key {
	return slices.Concat(nodeKeys(c), settingKeys(c), cloudKeys(&c.Cloud), kubeKeys(&c.Kubernetes), sizeKeys(&c.Pool.Scale), poolKeys(&c.Pool))
}

func nodeKeys(c *Config) []key {
	return []key{
		one("node", "a name without blanks of at most 253 bytes", func(text string) bool {
			c.Node = text
			return len(text) <= 253 && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
		}),
		file("cache", &c.Cache),
		file("state", &c.State),
		number("maxPods", &c.MaxPods.Fixed, 0, mostPods),
		file("kubeletConfig", &c.MaxPods.KubeletConfig),
		oneOf("fastPath", &c.FastPath, choice[Switch]{"auto", Auto}, choice[Switch]{"off", Off}),
		duration("resync", &c.Resync, 100*time.Millisecond, time.Hour),
		duration("settle", &c.Settle, 0, 10*time.Minute),
		duration("orphanAge", &c.OrphanAge, 0, 24*time.Hour),
		duration("leakAge", &c.LeakAge, time.Second, 24*time.Hour),
		one("listen", `an IP address (or localhost) and a port like "127.0.0.1:9809", or "" for none`, func(text string) bool {
			c.Listen = text
			return text == "" || validListen(text)
		}),
		flag("profile", &c.Profile),
		oneOf("logLevel", &c.LogLevel, choice[slog.Level]{"debug", slog.LevelDebug}, choice[slog.Level]{"info", slog.LevelInfo},
			choice[slog.Level]{"warn", slog.LevelWarn}, choice[slog.Level]{"error", slog.LevelError}),
		oneOf("logFormat", &c.LogFormat, choice[string]{"text", "text"}, choice[string]{"json", "json"}),
	}
}

// validListen wants an address in so many words: ":9809" would open the port to
// the world without saying so.
func validListen(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, errHost := netip.ParseAddr(host)
	_, errPort := strconv.ParseUint(port, 10, 16)
	return errPort == nil && (errHost == nil || host == "localhost")
}

func settingKeys(c *Config) []key {
	s := &c.Settings
	var families []eni.Family
	return []key{
		oneOf("routing", &s.Routing, choice[ipam.Routing]{"map", ipam.Map}, choice[ipam.Routing]{"rule", ipam.Rule}),
		one("firewall", "auto, nftables or iptables", func(text string) (ok bool) {
			if c.AnyFirewall = text == "auto"; c.AnyFirewall {
				return true
			}
			var err error
			s.Firewall, err = ipam.ParseFirewall(text)
			return err == nil
		}),
		list("vpcCIDRs", "a range like 10.0.0.0/16, without host bits", func(text string) bool {
			cidr, err := netip.ParsePrefix(text)
			s.VPC = append(s.VPC, cidr)
			return err == nil && cidr == cidr.Masked()
		}),
		flag("snat", &s.SNAT),
		duration("coolDown", &s.CoolDown, 0, time.Hour),
		mask("markMask", &s.MarkMask),
		list("families", "ipv4 or ipv6", func(text string) bool {
			for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
				if text == f.String() && !slices.Contains(families, f) {
					families = append(families, f)
					slices.Sort(families)
					s.Families = families
					return true
				}
			}
			return false
		}),
	}
}

func cloudKeys(c *Cloud) []key {
	return []key{
		oneOf("cloud.provider", &c.Provider, choice[string]{Sim, Sim}, choice[string]{AWS, AWS}, choice[string]{BCE, BCE}),
		one("cloud.endpoint", wantEndpoint, func(text string) bool {
			c.Endpoint = text
			return true // what it must be depends on the provider: see checkCloud
		}),
		one("cloud.metadata", wantURL, func(text string) bool {
			c.Metadata = text
			return text == "" || validURL(text)
		}),
		word("cloud.region", &c.Region),
		word("cloud.instance", &c.Instance),
		one("cloud.kind", "bcc, bbc or ebc", func(text string) bool {
			c.Kind = text
			return slices.Contains([]string{"", "bcc", "bbc", "ebc"}, text)
		}),
		word("cloud.vpc", &c.VPC),
		word("cloud.zone", &c.Zone),
		number("cloud.maxENIs", &c.MaxENIs, 0, eni.MaxIndex+1),
		number("cloud.maxIPsPerENI", &c.MaxIPsPerENI, 0, mostPerENI),
		one("cloud.cluster", "at most 32 letters, digits, dots, dashes and underscores", func(text string) bool {
			c.Cluster = text
			return len(text) <= 32 && strings.Trim(text, wordBytes+".") == ""
		}),
		words("cloud.subnets", &c.Subnets),
		pairs("cloud.subnetTags", &c.SubnetTags),
		words("cloud.securityGroups", &c.SecurityGroups),
		pairs("cloud.tags", &c.Tags),
		flag("cloud.prefixes", &c.Prefixes),
		duration("cloud.describe", &c.Describe, 100*time.Millisecond, time.Hour),
		number("cloud.callsPerSecond", &c.CallsPerSec, 1, mostCalls),
		number("cloud.callsBurst", &c.CallsBurst, 1, mostCalls),
		number("cloud.concurrent", &c.Concurrent, 1, mostAtOnce),
		duration("cloud.timeout", &c.Timeout, time.Second, 5*time.Minute),
	}
}

const (
	wantEndpoint = "unix:// and an absolute path, or http:// with a loopback address and a port, like http://127.0.0.1:9810"
	wantURL      = "https:// and a host, or http:// and a loopback or link-local address"
)

// validEndpoint wants a place on this machine: the simulated VPC knows no rights.
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

// validURL wants TLS where others could listen: what is said to a real cloud are
// credentials, and what it says are addresses.
func validURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return false
	}
	at, err := netip.ParseAddr(strings.Replace(u.Hostname(), "localhost", "127.0.0.1", 1))
	near := err == nil && (at.IsLoopback() || at.IsLinkLocalUnicast() || at == netip.MustParseAddr("fd00:ec2::254"))
	return u.Scheme == "https" || u.Scheme == "http" && near
}

func kubeKeys(k *Kubernetes) []key {
	return []key{
		oneOf("kubernetes.enabled", &k.Enabled, choice[Switch]{"auto", Auto}, choice[Switch]{"true", On}, choice[Switch]{"false", Off}),
		file("kubernetes.kubeconfig", &k.Kubeconfig),
		flag("kubernetes.taint", &k.Health.Taint),
		duration("kubernetes.faultGrace", &k.Health.Grace, time.Second, time.Hour),
		duration("kubernetes.faultQuiet", &k.Health.Quiet, time.Second, time.Hour),
	}
}

func sizeKeys(s *scale.Config) []key {
	return []key{
		oneOf("pool.strategy", &s.Strategy, choice[scale.Strategy]{"equation", scale.Equation}, choice[scale.Strategy]{"reactive", scale.Reactive},
			choice[scale.Strategy]{"kpa", scale.KPA}),
		number("pool.batch", &s.Batch, 1, 4096),
		percent("pool.minFree", &s.MinFree, 0, 1000),
		percent("pool.maxFree", &s.MaxFree, 100, mostPercent),
		flag("pool.countPrimaries", &s.CountPrimaries),
		oneOf("pool.primaryForm", &s.Form, choice[scale.Form]{"safe", scale.Safe}, choice[scale.Form]{"document", scale.Document}),
		number("pool.minPool", &s.MinPool, 0, mostAddresses),
		seconds("pool.stable", &s.Stable, 5*time.Second, 10*time.Minute),
		seconds("pool.delay", &s.Delay, 0, time.Hour),
		seconds("pool.burstWindow", &s.BurstWindow, time.Second, 10*time.Minute),
		percent("pool.burst", &s.BurstPercent, 101, mostPercent),
		percent("pool.shrink", &s.ShrinkPercent, 101, mostPercent),
		seconds("pool.releaseInterval", &s.ReleaseInterval, time.Second, time.Hour),
		number("pool.exhaustedSpare", &s.ExhaustedSpare, 0, 4096),
		seconds("pool.exhaustedDelay", &s.ExhaustedDelay, 0, time.Hour),
		percent("pool.utilization", &s.KPA.Utilization, 1, 100),
		percent("pool.grow", &s.KPA.GrowPercent, 101, mostGrow),
		number("pool.activation", &s.KPA.Activation, 1, 4096),
		oneOf("pool.kpaForm", &s.KPA.Form, choice[scale.KPAForm]{"document", scale.KPADocument}, choice[scale.KPAForm]{"knative", scale.KPAKnative}),
	}
}

func poolKeys(p *pool.Config) []key {
	return []key{
		oneOf("pool.mode", &p.Mode, choice[pool.Mode]{"batch", pool.Batch}, choice[pool.Mode]{"burstable", pool.Burstable},
			choice[pool.Mode]{"besteffort", pool.BestEffort}),
		number("pool.firstENI", &p.FirstENI, 0, 1),
		number("pool.maxAllocate", &p.MaxAllocate, 0, mostAddresses),
		number("pool.maxAllocateENI", &p.MaxAllocateENI, 0, eni.MaxIndex+1),
		one("pool.maxIPsPerENI", fmt.Sprintf("0, or a whole number from 2 to %d", mostPerENI), func(text string) bool {
			n, err := strconv.Atoi(text)
			p.MaxIPsPerENI = n
			return err == nil && n >= 0 && n <= mostPerENI && n != 1 // of one, the primary, no pod has anything
		}),
		number("pool.preAllocateENI", &p.PreAllocateENI, 0, eni.MaxIndex+1),
		number("pool.burstableMultiple", &p.Multiple, 0, eni.MaxIndex),
		number(multipleAlias, &p.Multiple, 0, eni.MaxIndex),
		flag("pool.partial", &p.Partial),
		flag("pool.returnENIs", &p.ReturnENIs),
		number("pool.minAllocate", &p.MinAllocate, 0, mostAddresses),
		number("pool.preAllocate", &p.PreAllocate, 0, mostAddresses),
		number("pool.maxAboveWatermark", &p.MaxAboveWatermark, 0, mostAddresses),
	}
}

// multipleAlias is what CCE calls pool.burstableMultiple.
const multipleAlias = "pool.burstableMehrfachENI"
