package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// settingModes are what --compare begins with, and what the agent's file calls that.
var settingModes = []struct {
	name   string
	values map[string]string
}{
	{"batch", map[string]string{"pool.mode": "batch", "pool.strategy": "equation"}},
	{"burstable", map[string]string{"pool.mode": "burstable"}},
	{"besteffort", map[string]string{"pool.mode": "besteffort"}},
	{"reactive", map[string]string{"pool.mode": "batch", "pool.strategy": "reactive"}},
	{"kpa", map[string]string{"pool.mode": "batch", "pool.strategy": "kpa"}},
}

func settingModeNames() []string {
	var names []string
	for _, m := range settingModes {
		names = append(names, m.name)
	}
	return names
}

// settingKey is a key that --compare sets.
type settingKey struct {
	agentconf.Key
	names []string // what it may be called, the usual name first
	only  []string // what --compare begins with where it has an effect, nil if it has everywhere
}

// settingKeys returns all of them: those of the pool, and what else matters to a
// simulation.
func settingKeys() []settingKey {
	short := map[string]string{"pool.batch": "B", "pool.minFree": "mf", "pool.maxFree": "Mf", "pool.burstableMultiple": "multiple"}
	others := strings.Fields("coolDown resync settle leakAge cloud.callsPerSecond cloud.callsBurst cloud.concurrent cloud.timeout")
	var list []settingKey
	for _, k := range agentconf.Keys() {
		name, pools := strings.CutPrefix(k.Name, "pool.")
		if !pools && !slices.Contains(others, k.Name) || name == "mode" || name == "strategy" {
			continue
		}
		one := settingKey{Key: k, names: []string{name}, only: onlyIn(name)}
		if s := short[k.Name]; s != "" {
			one.names = []string{s, name}
		}
		list = append(list, one)
	}
	return list
}

// onlyIn returns without which a key of the pool has no effect: other modes put their own
// numbers into the equation.
func onlyIn(name string) []string {
	switch name {
	case "minFree", "maxFree", "primaryForm":
		return []string{"batch", "reactive"}
	case "batch", "countPrimaries", "minPool":
		return []string{"batch", "reactive", "kpa"}
	case "utilization", "grow", "activation", "kpaForm":
		return []string{"kpa"}
	case "burstableMultiple", "burstableMehrfachENI", "partial", "returnENIs":
		return []string{"burstable"}
	case "minAllocate", "preAllocate", "maxAboveWatermark":
		return []string{"besteffort"}
	}
	return nil
}

// worksIn tells whether the key has an effect in what --compare begins with.
func (k settingKey) worksIn(mode string) bool { return k.only == nil || slices.Contains(k.only, mode) }

// compared is a --compare taken apart.
type compared struct {
	mode   string
	name   string
	values map[string]string // by full keys
	typed  map[string]string // what the text calls them
}

// comparedSettings returns what is to be compared, in the order typed: without any, the base
// itself.
func comparedSettings(base agentconf.Config, texts []string) ([]simulate.Setting, error) {
	if len(texts) == 0 {
		return []simulate.Setting{{Name: baseName(base), Config: base}}, nil
	}
	list := make([]simulate.Setting, len(texts))
	for i, text := range texts {
		c, err := parseCompare(text)
		if err == nil {
			list[i].Name = c.name
			list[i].Config, err = c.configFrom(base)
		}
		if err != nil {
			return nil, fmt.Errorf("--compare %s: %w", cli.Spelled(text), err)
		}
	}
	return list, setNames(list, texts)
}

func baseName(c agentconf.Config) string {
	if c.Pool.Mode == pool.Batch && c.Pool.Scale.Strategy != scale.Equation {
		return c.Pool.Scale.Strategy.String()
	}
	return c.Pool.Mode.String()
}

// setNames gives settings that would be called the same their texts as names.
func setNames(list []simulate.Setting, texts []string) error {
	count := map[string]int{}
	for _, s := range list {
		count[s.Name]++
	}
	said := map[string]bool{}
	for i := range list {
		if count[list[i].Name] > 1 {
			list[i].Name = texts[i]
		}
		if said[list[i].Name] {
			return fmt.Errorf("--compare %s: is there twice; name=NAME tells settings apart", texts[i])
		}
		said[list[i].Name] = true
	}
	return nil
}

// parseCompare takes MODE[:KEY=VALUE,...] apart.
func parseCompare(text string) (compared, error) {
	mode, pairs, more := strings.Cut(text, ":")
	i := slices.Index(settingModeNames(), mode)
	if i < 0 {
		return compared{}, errors.New("must begin with batch, burstable, besteffort, reactive or kpa")
	}
	c := compared{mode: mode, name: text, values: map[string]string{}, typed: map[string]string{}}
	for key, value := range settingModes[i].values {
		c.values[key] = value
	}
	if !more {
		return c, nil
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		if err := c.addPair(pair); err != nil {
			return compared{}, err
		}
	}
	return c, nil
}

// addPair takes one KEY=VALUE over.
func (c *compared) addPair(pair string) error {
	name, value, found := strings.Cut(pair, "=")
	if !found || name == "" {
		return fmt.Errorf("%q: must be KEY=VALUE, like B=16", pair)
	}
	if name == "name" {
		if c.typed[name] != "" || value == "" {
			return errors.New("name: must be given once, and not empty")
		}
		c.name, c.typed[name] = value, name
		return nil
	}
	key, err := findSettingKey(name)
	switch {
	case err != nil:
		return err
	case c.typed[key.Name] != "":
		return fmt.Errorf("%s: is given twice", name)
	// Two rows that differ in such a key alone would look like a comparison.
	case !key.worksIn(c.mode):
		return fmt.Errorf("%s: has no effect in this mode, only in %s", name, strings.Join(key.only, ", "))
	}
	c.values[key.Name], c.typed[key.Name] = value, name
	return nil
}

func findSettingKey(name string) (settingKey, error) {
	meant := ""
	for _, k := range settingKeys() {
		for _, n := range append(k.names, k.Name) {
			if n == name {
				return k, nil
			}
			if strings.EqualFold(n[strings.LastIndex(n, ".")+1:], name[strings.LastIndex(name, ".")+1:]) {
				meant = "; is " + n + " meant?"
			}
		}
	}
	// They are keys of the agent's file, but no part of a setting may contradict its mode.
	if name == "mode" || name == "strategy" {
		meant = ": what stands before the colon tells it"
	}
	if meant == "" {
		meant = "; --help lists them"
	}
	return settingKey{}, fmt.Errorf("%s: there is no such key%s", name, meant)
}

// configFrom returns the base with what the setting says. A watermark of the base is what
// keeps its nodes at besteffort; a setting that names another mode is without it.
func (c compared) configFrom(base agentconf.Config) (agentconf.Config, error) {
	const watermark = "pool.maxAboveWatermark"
	if _, said := c.values[watermark]; !said && c.values["pool.mode"] != "besteffort" {
		c.values[watermark] = "0"
	}
	conf, err := base.With(c.values)
	var wrong *config.KeyError
	if errors.As(err, &wrong) {
		if typed := c.typed[wrong.Key]; typed != "" {
			wrong.Key = typed
		}
		return conf, wrong
	}
	return conf, err
}

// completeCompare offers modes, then keys.
func completeCompare(typed string) []string {
	mode, _, found := strings.Cut(typed, ":")
	if !found {
		return settingModeNames()
	}
	if !slices.Contains(settingModeNames(), mode) {
		return nil
	}
	head := typed[:strings.LastIndexAny(typed, ":,")+1]
	list := []string{head + "name=\twhat its row is called"}
	for _, k := range settingKeys() {
		there := slices.ContainsFunc(k.names, func(n string) bool { return strings.Contains(head, ":"+n+"=") || strings.Contains(head, ","+n+"=") })
		if !there && k.worksIn(mode) {
			list = append(list, head+k.names[0]+"=\t"+k.Want)
		}
	}
	return list
}
