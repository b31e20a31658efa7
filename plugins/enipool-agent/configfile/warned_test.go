package configfile

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

// What the next release refuses is told at each change of the file, before the loop has it.
func TestAChangedConfigurationIsWarnedOf(t *testing.T) {
	cache := t.TempDir() + "/node.cache"
	parse := func(pool string) agentconf.Config {
		t.Helper()
		conf, err := agentconf.Parse([]byte("vpcCIDRs: [10.0.0.0/16]\nfirewall: nftables\ncache: " + cache + "\ncloud: {provider: aws}\n" + pool))
		if err != nil {
			t.Fatal(err)
		}
		return conf
	}
	var said bytes.Buffer
	r := newReload(parse(""), &said)
	r.fast = r.NewFastPath(r.Conf)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	files := make(chan Source)
	taken := r.acceptedConfigs(ctx, files)
	for _, tt := range []struct{ pool, want string }{
		{"pool: {strategy: kpa}\n", ""},
		{"pool: {strategy: reactive}\n", "pool.strategy: \\\"reactive\\\": the agent goes on with equation"},
	} {
		said.Reset()
		files <- Source{Conf: parse(tt.pool)}
		<-taken
		if got := said.String(); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s said %q, want %q", tt.pool, got, tt.want)
		}
	}
}

// Both formats of the log say in which unit a duration is.
func TestALoggedDurationHasItsUnit(t *testing.T) {
	for format, want := range map[string]string{"text": `"again in"=862ms`, "json": `"again in":"862ms"`} {
		conf, err := agentconf.Parse([]byte("vpcCIDRs: [10.0.0.0/16]\nfirewall: nftables\ncloud: {provider: aws}\nlogFormat: " + format + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		newReload(conf, &said).Log.Warn("cloud call failed", "again in", 862*time.Millisecond)
		if !strings.Contains(said.String(), want) {
			t.Errorf("%s: %q, want %q", format, said.String(), want)
		}
	}
}
