package bundle

import (
	"bytes"
	"regexp"
)

var (
	// block is a key whose value is the lines below it, with the indentation of the key.
	block = regexp.MustCompile(`(?im)(?:^|\\n|")([ \t]*)(?:- )?` + named + `:[ \t]+([|>][-+0-9]*[ \t]*)(\n|\\+n)`)

	// innerEnd is where a line within a string ends.
	innerEnd = regexp.MustCompile(`\n|\\+n|[^\\]"`)
)

// redactBlocks takes out the lines below such keys that are further in than the key.
func redactBlocks(text []byte) []byte {
	var out []byte
	for {
		at := block.FindSubmatchIndex(text)
		if at == nil {
			return append(out, text...)
		}
		indent, inner, from := at[3]-at[2], text[at[6]] == '\\', at[1]
		out = append(append(out, text[:at[4]]...), gone...)
		length := blockLength(text[from:], indent, inner)
		if length == 0 {
			from = at[6] // no line is further in
		}
		text = text[from+length:]
	}
}

// blockLength returns how long the lines are that are further in, without the end of the last one. inner tells that they are within a string.
func blockLength(text []byte, indent int, inner bool) int {
	length := 0
	for first := true; length < len(text); first = false {
		from := length
		if !first {
			from += lineBreak(text[length:])
			if from == length {
				return length // the string ends
			}
		}
		line := text[from:]
		if end := bytes.IndexByte(line, '\n'); !inner && end >= 0 {
			line = line[:end]
		} else if end := innerEnd.FindIndex(line); inner && end != nil {
			if line[end[1]-1] == '"' {
				line = line[:end[1]-1]
			} else {
				line = line[:end[0]]
			}
		}
		// An empty line is part of a block, whatever its indentation.
		inside := len(line) - len(bytes.TrimLeft(line, " \t"))
		if inside <= indent && len(line) > 0 {
			return length
		}
		length = from + len(line)
	}
	return length
}

// lineBreak returns the length of the end of a line that a text begins with.
func lineBreak(text []byte) int {
	end := innerEnd.FindIndex(text)
	if end == nil || end[0] != 0 || text[end[1]-1] == '"' {
		return 0
	}
	return end[1]
}
