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
