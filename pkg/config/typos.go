package config

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// ownKeys are the keys that the plugin reads. capabilities is the runtime's.
var ownKeys = [...]string{"cachePath", "waitForAddress", "mtu", "logFile", "logLevel", "statusFailsWhenExhausted", "dns",
	"capabilities", "runtimeConfig", "ingressRate", "ingressBurst", "egressRate", "egressBurst"}

// refuseTypos refuses keys that are nearly one of ours, which would otherwise seem to
// be obeyed. Other unknown keys pass: runtimes and later specifications add some.
func refuseTypos(f fields, prefix string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if own := Meant(key, ownKeys[:]); own != "" && !strings.EqualFold(own, key) {
			errs = append(errs, &KeyError{Key: prefix + key, Value: string(f[key]), Want: "removed or renamed: there is no such key; is " + prefix + own + " meant?"})
		}
	}
	return errors.Join(errs...)
}

// checkCapabilities looks at what the runtime is asked to send: of a name that is not
// quite right it sends nothing, and nobody would say so.
func checkCapabilities(top fields) error {
	value := top.get("capabilities")
	if value == nil {
		return nil
	}
	var asked map[string]bool
	if json.Unmarshal(value, &asked) != nil {
		return &KeyError{Key: "capabilities", Value: string(value), Want: `an object like {"portMappings": true, "bandwidth": true}`}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if own := Meant(name, []string{"portMappings", "bandwidth", AnnotationsCapability}); own != "" && own != name {
			errs = append(errs, &KeyError{Key: "capabilities." + name, Value: "true", Want: "removed or renamed: there is no such capability; is " + own + " meant?"})
		}
	}
	return errors.Join(errs...)
}

// Meant returns the name, of those that there are, that text most likely means: the
// same but for case, else the nearest one that differs by two letters at most, by one
// where the name is short. "" is none.
func Meant(text string, names []string) (nearest string) {
	text = strings.ToLower(text)
	least := 3
	for _, name := range names {
		d := editDistance(text, strings.ToLower(name))
		if d < least && (d < 2 || len(name) > 5) {
			nearest, least = name, d
		}
	}
	return nearest
}

// editDistance is how many bytes of a to add, remove or change, or neighbours to let change places, for b. Where the
// lengths alone make it more than 2 it returns 3.
func editDistance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	// On the stack: hardly any name is longer.
	before, row, next := make([]int, 0, 32), make([]int, 0, 32), make([]int, 0, 32)
	for j := range len(b) + 1 {
		before, row, next = append(before, 0), append(row, j), append(next, 0)
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
