package install

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheBuiltInConfigurationIsTheDocumentedOne(t *testing.T) {
	documented, err := os.ReadFile("../../conf/10-enipool.conflist")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(documented), string(DefaultConflist())); diff != "" {
		t.Error(diff)
	}
}

// chained is the configuration with the reference plugins, conf/10-enipool-chain.conflist.
var chained = strings.NewReplacer(`{"portMappings": true, "bandwidth": true, "io.kubernetes.cri.pod-annotations": true}
    }
`, `{"io.kubernetes.cri.pod-annotations": true}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}},
    {"type": "bandwidth", "capabilities": {"bandwidth": true}}
`).Replace(defaultConflist)

func TestTheChainIsTheDocumentedOne(t *testing.T) {
	documented, err := os.ReadFile("../../conf/10-enipool-chain.conflist")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(documented), chained); diff != "" {
		t.Error(diff)
	}
}

func TestAConfigurationTellsWhatItNeeds(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Conflist
	}{
		{"the built-in one", defaultConflist, Conflist{Name: "enipool", Versions: []string{"0.4.0", "1.0.0", "1.1.0"},
			Plugins: []string{"enipool"}, CachePath: "/run/enipool/node.cache"}},
		{"with the reference plugins", chained, Conflist{Name: "enipool", Versions: []string{"0.4.0", "1.0.0", "1.1.0"},
			Plugins: []string{"enipool", "portmap", "bandwidth"}, CachePath: "/run/enipool/node.cache"}},
		{"as another plugin's IPAM", `{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"ptp","ipam":{"type":"enipool","cachePath":"/x/y"}},{"type":"portmap"}]}`,
			Conflist{Name: "n", Versions: []string{"1.0.0"}, Plugins: []string{"ptp", "enipool", "portmap"}, CachePath: "/x/y"}},
		{"beside another IPAM", `{"name":"n","cniVersion":"1.1.0","cniVersions":["1.0.0"],"plugins":[{"type":"bridge","ipam":{"type":"host-local"}},{"type":"enipool"}]}`,
			Conflist{Name: "n", Versions: []string{"1.0.0", "1.1.0"}, Plugins: []string{"bridge", "host-local", "enipool"}, CachePath: "/run/enipool/node.cache"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseConflist([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Text = []byte(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAWrongConfigurationIsRefused(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{``, "read network configuration: unexpected end"},
		{`{} x`, "read network configuration: invalid character 'x'"},
		{`{"plugins": {}}`, "read network configuration: json: cannot unmarshal object"},
		{`{"cniVersion":"1.0.0","plugins":[{"type":"enipool"}]}`, `name: "": must be letters`},
		{`{"name":"a/b","cniVersion":"1.0.0","plugins":[{"type":"enipool"}]}`, `name: "a/b": must be letters`},
		{`{"name":"n","plugins":[{"type":"enipool"}]}`, "cniVersion is missing"},
		{`{"name":"n","cniVersion":"1.0.0"}`, `none has the type, or the ipam.type, "enipool"`},
		{`{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"ptp"}]}`, `none has the type, or the ipam.type, "enipool"`},
		{`{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"../enipool"}]}`, `type: "../enipool": must be the name of a program`},
		{`{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"ptp","ipam":{"type":"a/b"}}]}`, `ipam.type: "a/b": must be the name of a program`},
		{`{"name":"n","cniVersion":"1.0.0","plugins":[{"type":7}]}`, "cannot unmarshal number"},
		{`{"name":"n","cniVersion":"1.0.0","plugins":[null]}`, `type: "": must be the name of a program`},
		{`{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"enipool","mtu":5}]}`, "network configuration: mtu: 5: must be"},
	} {
		_, err := ParseConflist([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want %q", tt.text, err, tt.want)
		}
	}
}

func FuzzParseConflist(f *testing.F) {
	f.Add([]byte(defaultConflist))
	f.Add([]byte(`{"name":"n","cniVersion":"1.0.0","plugins":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConflist(text)
		if err != nil {
			return
		}
		for _, name := range c.Plugins {
			if name == "" || strings.ContainsAny(name, "/ ") {
				t.Errorf("it calls %q", name)
			}
		}
		if c.CachePath == "" || c.Name == "" || len(c.Versions) == 0 {
			t.Errorf("it lacks something: %+v", c)
		}
	})
}
