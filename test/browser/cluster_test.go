package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/web"
)

// cluster is an operator that says what a test wants.
type cluster struct {
	web.Source
	report operator.Report
	nodes  []operator.Why
	err    error
}

func (c cluster) Report(context.Context) (operator.Report, error) { return c.report, c.err }
func (c cluster) All(context.Context) ([]operator.Why, error)     { return c.nodes, c.err }

// nodesOf returns nodes, of which that many wait and that many are short.
func nodesOf(count, waiting, short int) (list []operator.Why) {
	since, next := time.Now().Add(-3*time.Minute), time.Now().Add(time.Hour)
	for i := range count {
		w := operator.Why{Node: fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i/62500, i/250%250, i%250), Mode: "Operator", Wanted: operator.Wanted{Want: 32, Have: 32}}
		switch {
		case i < waiting:
			w.Have, w.Waiting, w.Since, w.Class = 16, 4, &since, "starving"
			w.Causes = []operator.Told{{Reason: "SubnetExhausted", Message: "subnet-0a1b2c3d4e5f60718 has no free address", Next: &next}}
		case i < waiting+short:
			w.Have = 30
		case i == waiting+short:
			w.Mode = "Joining"
		case i == waiting+short+1:
			w.Mode = "Self"
		}
		list = append(list, w)
	}
	return list
}

func reportOf(waiting int) operator.Report {
	r := operator.Report{Epoch: 7, Nodes: map[string]int{"Operator": 4998}, Slots: operator.Slots{Waiting: 4 * waiting, Short: 16 * waiting}, UnderWay: 3,
		Queue:  []operator.Waiting{{Class: "starving", Count: waiting}},
		Budget: []operator.Tokens{{Action: "AssignPrivateIpAddresses", Tokens: 3.5, PerSecond: 4, Usual: 8, Others: .2, Waiting: 2, Closed: 4}, {Action: "CreateNetworkInterface", Tokens: 20, PerSecond: 5, Usual: 5}}}
	for i := range 6 {
		r.Subnets = append(r.Subnets, operator.Room{ID: fmt.Sprintf("subnet-0a1b2c3d4e5f6071%d", i), Zone: "eu-west-1a", State: "Ready", Free: 100 * i, Room: 100*i - 3, Owed: 3})
	}
	for i := range 30 {
		e := operator.Ended{At: time.Now(), Node: "ip-10-0-0-9.eu-west-1.compute.internal", What: "assign", Object: "eni-0f3a91c2d4e5b6a70", Subnet: "subnet-0a1b2c3d4e5f60711", Addresses: i - 10}
		if i%7 == 0 {
			e.Error = "the subnet has no free address"
		}
		r.Recent = append(r.Recent, e)
	}
	return r
}

func TestTheClustersPageAtEachWidthInBothThemes(t *testing.T) {
	c := Start(t)
	for _, tt := range []struct {
		name  string
		of    cluster
		title string
		says  string
		cells string // how the first and the last are
	}{
		{"well", cluster{report: reportOf(0), nodes: nodesOf(40, 0, 0)[2:]}, "Ready", "All 4998 nodes", "OO"},
		{"waiting", cluster{report: reportOf(60), nodes: nodesOf(5000, 60, 100)}, "Pods wait", "240 pods wait for an address", "WO"},
		{"away", cluster{err: operator.ErrNotLeading}, "Waiting", "does not lead", ""},
	} {
		server := httptest.NewServer(web.New("v1.2.3").Handler(tt.of, false))
		t.Cleanup(server.Close)
		for _, v := range views() {
			name := "cluster-" + tt.name + "-" + v.String()
			tab := c.Open(server.URL+"/", v)
			if got := tab.Text("#banner strong"); got != tt.title {
				t.Errorf("%s: the banner says %q, want %q", name, got, tt.title)
			}
			if got := tab.Text("#banner"); !strings.Contains(got, tt.says) {
				t.Errorf("%s: the banner says %q, not %q", name, got, tt.says)
			}
			if got := tab.Eval(`(s => s ? s[0] + s.at(-1) : '')([...document.querySelectorAll('.cells i')].map(c => c.textContent).join(''))`); got != tt.cells {
				t.Errorf("%s: the first and the last cell are %q, want %q", name, got, tt.cells)
			}
			check(t, tab, name)
			tab.Close()
		}
		server.Close()
	}
}

func TestNamesOfTheClusterAreText(t *testing.T) {
	const name = `<img src=x onerror="document.title='x'">"'&node=`
	of := cluster{report: reportOf(1), nodes: nodesOf(3, 1, 0)}
	of.nodes[0].Node, of.nodes[0].Causes[0].Message = name, name
	of.report.Subnets[0].ID, of.report.Recent[0].Object, of.report.Recent[0].Error, of.report.Budget[0].Action = name, name, name, name
	server := httptest.NewServer(web.New("v1").Handler(of, false))
	defer server.Close()
	tab := Start(t).Open(server.URL+"/", View{Width: 768})
	if got := tab.Text("#worst td a"); got != name {
		t.Errorf("the worst node is %q", got)
	}
	if got := tab.Eval(`new URL(document.querySelector('#worst td a').href).searchParams.get('node')`); got != name {
		t.Errorf("its link asks for %q", got)
	}
	if got := tab.Eval(`String(document.querySelectorAll('img').length)`); got != "0" {
		t.Errorf("%s pictures", got)
	}
	if list := tab.Errors(); len(list) > 0 {
		t.Errorf("the browser says %v", list)
	}
}
