package config

import "testing"

func TestAWordThatIsNoCommandIsToldWithWhatWasMeant(t *testing.T) {
	for arg, want := range map[string]string{
		"agent.yaml":   `unknown command "agent.yaml" for "enipool-agent"; did you mean enipool-agent --config agent.yaml?`,
		"/etc/enipool": `unknown command "/etc/enipool" for "enipool-agent"; did you mean enipool-agent --config /etc/enipool?`,
		"instal":       `unknown command "instal" for "enipool-agent"; did you mean enipool-agent install?`,
		"now":          `unknown command "now" for "enipool-agent"; see enipool-agent --help`,
	} {
		if err := UnknownArgument("enipool-agent", []string{"install", "uninstall"}, []string{arg}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	for arg, want := range map[string]string{
		"now":           `enipool-operator takes flags alone, and not "now"; see enipool-operator --help`,
		"operator.yaml": `enipool-operator takes flags alone, and not "operator.yaml"; did you mean enipool-operator --config operator.yaml?`,
	} {
		if err := UnknownArgument("enipool-operator", nil, []string{arg}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	if err := UnknownArgument("enipool-agent", []string{"install"}, nil); err != nil {
		t.Error(err)
	}
}
