package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/kube"
)

// BenchmarkAgentAtRest lets the agent's own process alone on a node whose 250 pods have their
// addresses. `go run ./test/bench -only agent-rest` calls it.
func BenchmarkAgentAtRest(b *testing.B) {
	programsFolder := os.Getenv(programsEnv)
	if programsFolder == "" {
		b.Skip("needs the programs and namespaces of go run ./test/bench -only agent-rest")
	}
	kube.Need(b)
	b.Run(plainAgent, func(b *testing.B) {
		for b.Loop() {
			c := clusterNode{B: b, bench: &bench{bin: programs(programsFolder)}, api: kube.Start(b, kube.Options{}), describe: realDescribe}
			c.full(c.rest)
		}
	})
}

// rest reports what the agent does in a while, a minute.
func (c clusterNode) rest(n *agentNode) {
	time.Sleep(calmAfter)
	before := c.doings(n)
	time.Sleep(restLength)
	after := c.doings(n)
	for unit, v := range after {
		if unit == "idle-percent" {
			c.ReportMetric(100*(v-before[unit])/restLength.Seconds(), unit)
		} else {
			c.ReportMetric((v-before[unit])/restLength.Minutes(), unit)
		}
	}
}

// doings are what the agent has done so far: seconds of CPU, calls, requests and bytes.
func (c clusterNode) doings(n *agentNode) map[string]float64 {
	c.Helper()
	pid := n.process.Cmd.Process.Pid
	cpu, err := cpuTime(pid)
	c.must(err)
	io, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	c.must(err)
	return map[string]float64{
		"idle-percent":   cpu.Seconds(),
		"idle-describes": float64(n.cloud.Account.Calls()[sim.ActDescribe]),
		"idle-changes":   float64(n.changes()),
		"idle-writes":    apiWrites(c.api.Kubectl("get", "--raw", "/metrics")),
		"idle-kB":        c.count(io, "wchar") / 1000,
		"idle-syscalls":  c.count(io, "syscr") + c.count(io, "syscw"),
	}
}

func (c clusterNode) count(io []byte, line string) float64 {
	c.Helper()
	found := regexp.MustCompile(`(?m)^` + line + `: (\d+)$`).FindSubmatch(io)
	if found == nil {
		c.Fatalf("no %s in:\n%s", line, io)
	}
	v, err := strconv.ParseFloat(string(found[1]), 64)
	c.must(err)
	return v
}

var apiWrite = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="(?:nodes|pods|events)".*verb="(?:POST|PUT|PATCH|DELETE)".*\} (\S+)$`)

// apiWrites counts the writes to objects that agents write, by the metrics of an API server.
func apiWrites(metrics string) (sum float64) {
	for _, found := range apiWrite.FindAllStringSubmatch(metrics, -1) {
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			panic(fmt.Sprintf("the API server counts %q", found[0]))
		}
		sum += v
	}
	return sum
}
