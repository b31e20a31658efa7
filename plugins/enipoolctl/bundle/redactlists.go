package bundle

import (
	"bytes"
	"regexp"
)

var (
	// below is a key with nothing behind it: its value is on the lines below.
	below = regexp.MustCompile(`(?im)(?:^|\\n|")([ \t]*)(- )?` + named + `:[ \t]*(?:#[^\n\\]*)?(\n|\\+n)`)

	// keyed is what begins with a key: the value of that is told by it.
	keyed = regexp.MustCompile(`^(?:\{|["']?[\w./-]+["']?:(?:\s|$))`)
)

// redactLists takes out the values below such keys: items of lists, and a value on a line of its own. What has keys itself stays.
func redactLists(text []byte) []byte {
	var out []byte
	for {
		at := below.FindSubmatchIndex(text)
		if at == nil {
			return append(out, text...)
		}
		indent, inner := at[3]-at[2], text[at[6]] == '\\'
		if at[4] >= 0 {
			indent += len("- ")
		}
		out = append(out, text[:at[7]]...)
		values, length := redactValues(text[at[7]:], indent, inner)
		out, text = append(out, values...), text[at[7]+length:]
	}
}

// redactValues returns the lines that are the value of a key with that indentation, without what has no key, and how long they were. inner tells that
// they are within a string.
func redactValues(text []byte, indent int, inner bool) (out []byte, length int) {
	begun, secret := false, false
	for length < len(text) {
		line, end := cutLine(text[length:], inner)
		body := bytes.TrimLeft(line, " \t")
		in := len(line) - len(body)
		isItem := len(body) > 0 && body[0] == '-' && (len(body) == 1 || body[1] == ' ')
		switch {
		case len(body) == 0:
		case in < indent, in == indent && !isItem, !begun && !isItem && keyed.Match(body):
			return out, length
		case isItem:
			body = bytes.TrimLeft(body[1:], " \t")
			secret = !keyed.Match(body)
		case !begun:
			secret = true
		}
		begun = begun || len(body) > 0
		if secret && len(body) > 0 {
			out = append(append(out, line[:len(line)-len(body)]...), gone...)
		} else {
			out = append(out, line...)
		}
		out = append(out, text[length+len(line):length+len(line)+end]...)
		if length += len(line) + end; end == 0 { // of the text, or of the string
			break
		}
	}
	return out, length
}

// cutLine returns the first line, and how long its end is: 0 where the text ends, or the string that it is within.
func cutLine(text []byte, inner bool) (line []byte, end int) {
	if !inner {
		if at := bytes.IndexByte(text, '\n'); at >= 0 {
			return text[:at], 1
		}
		return text, 0
	}
	if text[0] == '"' {
		return nil, 0
	}
	at := innerEnd.FindIndex(text)
	switch {
	case at == nil:
		return text, 0
	case text[at[1]-1] == '"':
		return text[:at[1]-1], 0
	}
	return text[:at[0]], at[1] - at[0]
}
