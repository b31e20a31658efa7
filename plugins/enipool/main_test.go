package main

import (
	"strings"
	"testing"
)

func TestAPluginThatAPersonGivesAWordSaysWhoItIsFor(t *testing.T) {
	for args, stray := range map[string]string{"": "", "--version": "", "version": "version", "--version now": "now", "add pod": "pod", "--help": "--help"} {
		got := strayArgument(strings.Fields(args))
		if (got == "") != (stray == "") || !strings.Contains(got, stray) || stray != "" && !strings.HasSuffix(got, "enipoolctl is for people") {
			t.Errorf("enipool %s: %q", args, got)
		}
	}
}
