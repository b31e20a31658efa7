package region

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/operatorconf"
)

// A right that the operator lacks stops all nodes: the log says which, and what to do, once and not for each of them.
func TestTheLogTellsWhatTheCloudForbids(t *testing.T) {
	denied := &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.Unauthorized, Action: "ec2:CreateNetworkInterface", Detail: "UnauthorizedOperation"}
	clock := &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.WrongClock, Detail: "expired"}
	for _, tt := range []struct {
		name     string
		provider string
		play     func(create func(errs ...error), wait func(time.Duration))
		want     []string // what each line has
	}{
		{"all nodes, and then again", agentconf.AWS, func(create func(...error), wait func(time.Duration)) {
			create(denied, denied, denied)
			wait(3 * time.Hour)
			create(denied, nil, nil)
		}, []string{"WARN|CreateNetworkInterface|conf/aws/policy-operator.json|UnauthorizedOperation", "INFO|CreateNetworkInterface|refused=3"}},
		{"of Baidu its own file", agentconf.Baidu, func(create func(...error), _ func(time.Duration)) { create(denied) }, []string{"WARN|conf/baidu/policy-operator.json"}},
		{"two reasons", agentconf.AWS, func(create func(...error), _ func(time.Duration)) { create(denied, clock, denied, clock) }, []string{"WARN|Unauthorized", "WARN|expired"}},
		{"some nodes alone", agentconf.AWS, func(create func(...error), wait func(time.Duration)) {
			create(denied, nil, denied, nil, denied, nil)
			wait(time.Hour)
			create(denied, nil)
		}, []string{"WARN|refused=1", "INFO|", "WARN|refused=3", "INFO|"}},
		{"what passes", agentconf.AWS, func(create func(...error), _ func(time.Duration)) {
			create(&driver.Error{Kind: cloud.ErrThrottled}, &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.IndexTaken}, nil)
		}, nil},
	} {
		var said bytes.Buffer
		now := time.Unix(1e9, 0)
		r := newRefused(tt.provider, slog.New(slog.NewTextHandler(&said, nil)), func() time.Time { return now })
		tt.play(func(errs ...error) {
			for _, err := range errs {
				r.ended("CreateNetworkInterface", err)
				r.ended("DescribeSubnets", nil)
			}
		}, func(d time.Duration) { now = now.Add(d) })
		lines := strings.Split(strings.TrimSuffix(said.String(), "\n"), "\n")
		if said.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %d lines, want %d:\n%s", tt.name, len(lines), len(tt.want), &said)
			continue
		}
		for i, want := range tt.want {
			for part := range strings.SplitSeq(want, "|") {
				if !strings.Contains(lines[i], part) {
					t.Errorf("%s: %q is not in %s", tt.name, part, lines[i])
				}
			}
		}
	}
}

func TestAnOpenedRegionTellsWhatIsForbidden(t *testing.T) {
	account := sim.NewAccount(sim.Options{})
	at := filepath.Join(t.TempDir(), "account")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- account.Serve(ctx, l, account.Handler()) }()
	defer func() { cancel(); <-served }()
	account.Refuse(cloud.ErrForbidden)
	conf, err := operatorconf.Parse([]byte("cloud: {endpoint: 'unix://" + at + "', subnets: [a]}"))
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	counted := 0
	r, _, err := Open(conf, func(context.Context, string) error { return nil }, func(string, error) { counted++ }, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Subnets(ctx); err == nil || counted == 0 || !strings.Contains(said.String(), "the cloud forbids a request") {
		t.Errorf("%v, %d requests counted: %s", err, counted, &said)
	}
}
