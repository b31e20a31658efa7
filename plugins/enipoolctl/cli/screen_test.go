package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestAPictureStaysOnTheScreen(t *testing.T) {
	text := "cause: none left\n\n1\n2\n3\n4 is too long\n5\n"
	isBad := func(line string) bool { return strings.HasPrefix(line, "cause:") }
	size := func(columns, rows int) func() (int, int) { return func() (int, int) { return columns, rows } }
	for want, s := range map[string]Screen{
		"cause: none left\n\n1\n2\n3\n4 is too long\n5\n":                          {size: size(0, 0)},
		"\x1b[31mcause: none left\x1b[0m\n\n1\n2\n3\n4 is too long\n5\n":           {size: size(80, 8), colour: true},
		"cause: n…\n\n1\n2\n3\n4 is too…\n5\n":                                     {size: size(9, 24)},
		"cause: none left\n\n1\n2\nand 3 more lines: make the window larger, o…\n": {size: size(44, 6)},
	} {
		if got := s.draw(text, isBad); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
	var out strings.Builder
	s := Screen{out: &out, size: size(80, 24)}
	if err := s.Show(isBad, func(w io.Writer) error { fmt.Fprint(w, "a\n"); return io.EOF }); err != io.EOF || out.String() != "\x1b[H\x1b[2Ja\n" {
		t.Errorf("%q, %v", &out, err)
	}
}

// An API server that is away takes nothing off the screen.
func TestTheLastPictureStaysWhereNoneCanBeMade(t *testing.T) {
	var out strings.Builder
	isBad := func(string) bool { return false }
	s := Screen{out: &out, size: func() (int, int) { return 80, 24 }}
	for _, text := range []string{"a\n", ""} {
		out.Reset()
		err := s.Show(isBad, func(w io.Writer) error {
			if text == "" {
				return io.EOF
			}
			_, err := fmt.Fprint(w, text)
			return err
		})
		if out.String() != "\x1b[H\x1b[2Ja\n" || (err == nil) != (text != "") {
			t.Errorf("%q is shown as %q, %v", text, &out, err)
		}
	}
}

// Texts wrap: nothing of a cause is left out. Rows that wrap are no table any more.
func TestTablesFitTheTerminalAndAreWholeElsewhere(t *testing.T) {
	show := func(whole bool) func(io.Writer) error {
		return func(out io.Writer) error {
			fmt.Fprintln(out, "cause: none is left in the subnet")
			table := NewTable(out, whole)
			fmt.Fprint(table, "ADDRESS\tPOD\n10.0.0.11\tshop/w\u00e9b-0\n")
			return table.Flush()
		}
	}
	const all = "cause: none is left in the subnet\nADDRESS    POD\n10.0.0.11  shop/w\u00e9b-0\n"
	isBad := func(line string) bool { return strings.HasPrefix(line, "10.") }
	for _, tt := range []struct {
		columns       int
		colour, whole bool
		want          string
	}{
		{16, false, false, "cause: none is left in the subnet\nADDRESS    POD\n10.0.0.11  shop\u2026\n"},
		{16, true, false, "cause: none is left in the subnet\nADDRESS    POD\n\x1b[31m10.0.0.11  shop\u2026\x1b[0m\n"},
		{21, false, false, all},
		{16, false, true, all},
		{0, false, false, all}, // it does not tell its size
	} {
		var out strings.Builder
		s := Screen{out: &out, colour: tt.colour, size: func() (int, int) { return tt.columns, 5 }}
		if err := s.showOnce(isBad, show(tt.whole)); err != nil || out.String() != tt.want {
			t.Errorf("%+v: %q, %v", tt, &out, err)
		}
	}
	var out strings.Builder
	if err := Painted(&out, isBad, show(false)); err != nil || out.String() != all {
		t.Errorf("through a pipe: %q, %v", &out, err)
	}
}

func TestColoursAreForTerminalsOfPeopleWhoWantThem(t *testing.T) {
	for env, want := range map[string]bool{"": true, "NO_COLOR": false, "TERM": false} {
		if got := mayColour(func(name string) string { return map[string]string{env: "dumb"}[name] }); got != want {
			t.Errorf("with %s set: %t", env, got)
		}
	}
	var out strings.Builder
	bad := func(string) bool { return true }
	if err := Painted(&out, bad, func(w io.Writer) error { _, err := fmt.Fprint(w, "a\nb"); return err }); err != nil || out.String() != "a\nb" || ScreenOf(&out) != nil {
		t.Errorf("%q, %v", &out, err)
	}
}
