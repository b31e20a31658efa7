package account

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	awsconf "github.com/enipool/enipool/conf/aws"
	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/goccy/go-yaml"
)

// awsLimits is the built-in table of instance types.
var awsLimits = awsconf.Types

// limitsFile is a table of instance types as it is written.
type limitsFile struct {
	Source string `yaml:"source"`
	Date   string `yaml:"date"`
	// Without are the families whose ENIs take no prefixes; the cloud is asked for it.
	Without []string `yaml:"withoutPrefixes"`
	Types   map[string]struct {
		ENIs int `yaml:"enis"`
		IPs  int `yaml:"ipsPerENI"`
	} `yaml:"types"`
}

// limitTable tells what instance types carry.
type limitTable struct {
	from       string // for errors: the file, or a name of the built-in table
	types      map[string]eni.Limits
	noPrefixes map[string]bool // types whose ENIs take none
}

func (t limitTable) typeNames() []string { return slices.Sorted(maps.Keys(t.types)) }

// without names the table, which lacks a type, with the type that is most likely meant.
func (t limitTable) without(name string) string {
	if meant := config.Meant(name, t.typeNames()); meant != "" {
		return t.from + " (it has " + meant + ")"
	}
	return t.from
}

// readLimits reads a table that a person gives.
func readLimits(path string) (limitTable, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return limitTable{}, fmt.Errorf("--limits: %w", err)
	}
	table, err := parseLimits(path, text)
	if err != nil {
		return limitTable{}, fmt.Errorf("--limits %s%w", path, err)
	}
	return table, nil
}

// parseLimits reads a table. Its errors begin with ":" or ":LINE:", to stand behind the file's
// name.
func parseLimits(from string, text []byte) (limitTable, error) {
	var file limitsFile
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&file); err != nil && err != io.EOF { // which an empty file is
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			line, _, _ := strings.Cut(at.GetMessage(), "\n")
			return limitTable{}, fmt.Errorf(":%d: %s", at.GetToken().Position.Line, line)
		}
		return limitTable{}, fmt.Errorf(": %w", err)
	}
	table := limitTable{from, map[string]eni.Limits{}, map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(file.Types)) {
		// Checked here: a number that no instance has would be planned with, and not refused, later.
		limits := eni.Limits{ENIs: file.Types[name].ENIs, V4: file.Types[name].IPs}
		if err := (capacity.Instance{Limits: limits}).Validate(); err != nil {
			return limitTable{}, fmt.Errorf(": %s: %w", name, err)
		}
		table.addType(name, limits, awsconf.TakesPrefixes(name, file.Without))
	}
	if len(table.types) == 0 {
		return limitTable{}, errors.New(`: has no types, like "types: {m5.large: {enis: 3, ipsPerENI: 10}}"`)
	}
	return table, nil
}

func (t limitTable) addType(name string, l eni.Limits, prefixes bool) {
	t.types[name] = l
	if !prefixes {
		t.noPrefixes[name] = true
	}
}

// builtinLimits is the built-in table. A test compares it with what parseLimits reads.
func builtinLimits() limitTable {
	builtin := awsconf.ReadTable()
	table := limitTable{"the built-in table of " + builtin.Date, map[string]eni.Limits{}, map[string]bool{}}
	for _, t := range builtin.Types {
		table.addType(t.Name, eni.Limits{ENIs: t.ENIs, V4: t.IPs}, t.Prefixes)
	}
	return table
}
