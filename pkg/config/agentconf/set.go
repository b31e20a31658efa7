package agentconf

import (
	"fmt"
	"maps"
	"slices"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/pool"
)

// Key is a key of the file by its full name, like "pool.batch", and what its value
// must be.
type Key struct{ Name, Want string }

// Keys returns the keys that With sets: all but those of lists.
func Keys() []Key {
	var list []Key
	for _, k := range allKeys(new(Config)) {
		if !k.IsList {
			list = append(list, Key{k.Name, k.Want})
		}
	}
	return list
}

// With returns what the configuration would be if its file had these values too, by the full
// names of keys. Errors are those of Parse, except that values are taken which only a simulation
// may have. The configuration itself stays as it is.
func (c Config) With(values map[string]string) (Config, error) {
	c.Settings.VPC, c.Settings.Families = slices.Clone(c.Settings.VPC), slices.Clone(c.Settings.Families)
	c.Cloud.Subnets, c.Cloud.SecurityGroups = slices.Clone(c.Cloud.Subnets), slices.Clone(c.Cloud.SecurityGroups)
	c.Cloud.SubnetTags, c.Cloud.Tags = maps.Clone(c.Cloud.SubnetTags), maps.Clone(c.Cloud.Tags)
	parsed := c.writtenKeys()
	if !c.ModeSet && c.Pool.Mode == pool.BestEffort {
		c.Pool.Mode = pool.Batch // deriveRest decides it again
	}
	for name, text := range values {
		parsed.Values[name] = text
	}
	table := allKeys(&c)
	for _, k := range table {
		if text, said := values[k.Name]; said && k.IsList {
			parsed.AddError(k.Name, text, "set in the file: it is a list")
			delete(parsed.Values, k.Name)
		}
	}
	parsed.Set(table)
	parsed.deriveRest(&c)
	parsed.checkTogether(&c)
	if err := parsed.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// writtenKeys returns the keys that deriveRest looks for and that the file must have had, because
// their values are not the derived ones.
func (c Config) writtenKeys() *reader {
	parsed := &reader{Reader: keys.NewReader(), compares: true}
	if c.ModeSet {
		parsed.Values["pool.mode"] = c.Pool.Mode.String()
	}
	if c.Pool.Scale.MaxFree != c.Pool.Scale.MinFree+100 {
		parsed.Values["pool.maxFree"] = fmt.Sprintf("%d%%", c.Pool.Scale.MaxFree)
	}
	return parsed
}
