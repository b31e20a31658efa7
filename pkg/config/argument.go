package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// UnknownArgument returns the error of a program whose first argument is none of its commands, nil where it got
// no argument. One that looks like a file is most likely the configuration, which --config names.
func UnknownArgument(program string, commands, args []string) error {
	if len(args) == 0 {
		return nil
	}
	wrong := fmt.Sprintf("unknown command %q for %q", args[0], program)
	isFile := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(args[0])) || strings.Contains(args[0], "/")
	switch command := Meant(args[0], commands); {
	case isFile:
		return fmt.Errorf("%s; did you mean %s --config %s?", wrong, program, args[0])
	case command != "":
		return fmt.Errorf("%s; did you mean %s %s?", wrong, program, command)
	}
	return fmt.Errorf("%s; see %s --help", wrong, program)
}
