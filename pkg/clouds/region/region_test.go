package region

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/operatorconf"
)

// A misspelt action would limit nothing: people learn of it at the start, with those that there are. Actions without a bucket of
// their own are actions too.
func TestTheBudgetNamesActionsOfTheCloud(t *testing.T) {
	const aws, baidu = "cloud: {provider: aws, region: eu-west-3, instance: i-0, cluster: blue, subnets: [a]}\n",
		"cloud: {provider: baidu, region: bj, instance: i-0, vpc: v, cluster: blue, subnets: [a]}\n"
	limit := func(action string) string { return "budget: {" + action + ": {burst: 3, perSecond: 1}}" }
	for _, tt := range []struct{ text, wrong string }{
		{aws, ""},
		{aws + limit("CreateNetworkInterface"), ""},
		{aws + limit("CreateNetworkInterfaces"), "budget[CreateNetworkInterfaces]: unknown action; with cloud.provider aws there are AssignPrivateIpAddresses, AttachNetworkInterface, CreateNetworkInterface, "},
		{aws + limit("CreateEni"), "budget[CreateEni]: unknown action"},
		{baidu + limit("DetachEniInstance"), ""},
		{"cloud: {endpoint: 'unix:///a', subnets: [a]}\n" + limit("Create"), ""},
	} {
		conf, err := operatorconf.Parse([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Open(conf, func(context.Context, string) error { return nil }, nil, slog.New(slog.DiscardHandler))
		switch {
		case tt.wrong == "" && err != nil:
			t.Errorf("%s: %v", tt.text, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: %v, want %s", tt.text, err, tt.wrong)
		}
	}
}
