package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// StrayArgument returns the error of a command that takes none and got that one.
func StrayArgument(command, arg string) error {
	return fmt.Errorf("%s takes flags alone, and not %q; see %s --help", command, arg, command)
}

// UnknownArgument returns the error of a program whose first argument is none of its commands, nil where it got
// no argument. A program without commands takes flags alone. One that looks like a file is most likely the configuration, which --config names.
func UnknownArgument(program string, commands, args []string) error {
	if len(args) == 0 {
		return nil
	}
	wrong := fmt.Sprintf("unknown command %q for %q", args[0], program)
	if len(commands) == 0 {
		wrong = fmt.Sprintf("%s takes flags alone, and not %q", program, args[0])
	}
	isFile := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(args[0])) || strings.Contains(args[0], "/")
	switch command := Meant(args[0], commands); {
	case isFile:
		return fmt.Errorf("%s; did you mean %s --config %s?", wrong, program, args[0])
	case command != "":
		return fmt.Errorf("%s; did you mean %s %s?", wrong, program, command)
	}
	return fmt.Errorf("%s; see %s --help", wrong, program)
}
