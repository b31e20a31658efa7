package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Screen is a terminal on which each picture replaces the one before it.
type Screen struct {
	out    io.Writer
	colour bool
	size   func() (columns, rows int)
	last   string // picture, as it was written
}

// ScreenOf returns the terminal that out is, nil if it is none.
func ScreenOf(out io.Writer) *Screen {
	f, is := out.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &Screen{out: f, colour: mayColour(os.Getenv), size: func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0, 0
		}
		return columns, rows
	}}
}

// mayColour tells whether people want colours on a terminal (no-color.org).
func mayColour(env func(string) string) bool { return env("NO_COLOR") == "" && env("TERM") != "dumb" }

// Show replaces the picture. What has no room is left out, for it would push the head of the picture, where the counts are, off the screen.
// Where an error came and nothing else the last picture stays, below which the error is told: it is what is known.
func (s *Screen) Show(isBad func(line string) bool, show func(io.Writer) error) error {
	var picture bytes.Buffer
	err := show(&picture)
	if err == nil || picture.Len() > 0 {
		s.last = s.draw(picture.String(), isBad)
	}
	fmt.Fprintf(s.out, "\x1b[H\x1b[2J%s", s.last)
	return err
}

// draw returns a picture as it is written: no larger than the terminal, with what is bad in red.
func (s *Screen) draw(text string, isBad func(line string) bool) string {
	columns, rows := s.size()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out strings.Builder
	for i, line := range lines {
		if more := len(lines) - i; rows > 1 && i == rows-2 && more > 1 {
			fmt.Fprintf(&out, "%s\n", cut(fmt.Sprintf("and %d more lines: make the window larger, or ask for less", more), columns))
			break
		}
		out.WriteString(paint(cut(line, columns), s.colour && isBad(line)) + "\n")
	}
	return out.String()
}

// cut shortens a line to the columns, 0 for any number of them.
func cut(line string, columns int) string {
	if columns <= 0 || utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-1]) + "…"
}

func paint(line string, red bool) string {
	if !red {
		return line
	}
	return "\x1b[31m" + line + "\x1b[0m"
}

// Painted shows something on out. On a terminal tables fit it, and the lines that are bad are red if people want colours.
func Painted(out io.Writer, isBad func(line string) bool, show func(io.Writer) error) error {
	if screen := ScreenOf(out); screen != nil {
		return screen.showOnce(isBad, show)
	}
	return show(out)
}

// showOnce shows something below what is there.
func (s *Screen) showOnce(isBad func(line string) bool, show func(io.Writer) error) error {
	columns, _ := s.size()
	text := &sheet{columns: columns}
	err := show(text)
	for line := range strings.Lines(text.String()) {
		bare := strings.TrimSuffix(line, "\n")
		fmt.Fprint(s.out, paint(bare, s.colour && isBad(bare))+line[len(bare):])
	}
	return err
}

// Heads returns where the heads of a table are written: nowhere for people who want it bare.
func Heads(table io.Writer, bare bool) io.Writer {
	if bare {
		return io.Discard
	}
	return table
}
