package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Most bounds numbers that are typed: more than any cloud has, and sums of it stay
// far from overflow.
const Most = 1 << 30

// AtLeast checks the number of a flag.
func AtLeast(flag string, n, least int) error {
	switch {
	case n < least:
		return fmt.Errorf("--%s %d: must be at least %d", flag, n, least)
	case n > Most:
		return fmt.Errorf("--%s %d: must be at most %d", flag, n, Most)
	}
	return nil
}

// FirstLine returns the first of joined errors.
func FirstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}

// Offer makes the shell offer the values, and no files.
func Offer(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// WrongValue is a cobra.Command's flag error function. It says what the flag must be, instead of
// what pflag's parser says.
func WrongValue(cmd *cobra.Command, err error) error {
	var bad interface{ GetValue() string }
	if !errors.As(err, &bad) {
		return err
	}
	before := fmt.Sprintf("invalid argument %q for ", bad.GetValue())
	name, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), before), `" flag: `)
	flag := cmd.Flags().Lookup(name[strings.LastIndex(name, "--")+2:])
	if flag == nil {
		return err
	}
	wants := map[string]string{"int": "a whole number", "uint64": "a whole number from 0", "duration": "a time with its unit, like 30s or 24h"}
	want, known := wants[flag.Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %s: must be %s", flag.Name, Spelled(bad.GetValue()), want)
}

// Spelled is a value as an error repeats it.
func Spelled(value string) string {
	if value == "" {
		return `""`
	}
	return value
}
