package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPluginLearnsOfWhatItIsCapableOfOnly(t *testing.T) {
	conf := map[string]any{"type": "portmap"}
	asked := map[string]any{"portMappings": []int{1}, "bandwidth": 2}
	for _, tt := range []struct {
		name string
		can  map[string]any
		want string
	}{
		{"one", map[string]any{"portMappings": true, "bandwidth": false}, `{"runtimeConfig":{"portMappings":[1]},"type":"portmap"}`},
		{"none", nil, `{"type":"portmap"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, runtimeConf(conf, tt.can, asked)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if diff := cmp.Diff(map[string]any{"type": "portmap"}, conf); diff != "" {
		t.Errorf("the shared configuration changed:\n%s", diff)
	}
}

func TestResultGoesToTheNextPlugin(t *testing.T) {
	if got := withResult(`{"type":"sbr"}`, []byte(`{"ips":[]}`)); got != `{"prevResult":{"ips":[]},"type":"sbr"}` {
		t.Error(got)
	}
	if got := withResult(`{"type":"sbr"}`, nil); got != `{"type":"sbr"}` {
		t.Error(got)
	}
}
