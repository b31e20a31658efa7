package bundle

import (
	"bytes"
	"regexp"
)

// gone stands where a secret was.
const gone = "REDACTED"

// What the patterns are made of. Quotes and ends of lines may be escaped: an object holds the text that it was made from, and a ConfigMap files.
const (
	word   = `(?:secret|password|passwd|passphrase|[_-]pass\b|[_-]pwd\b|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|client-key-data|authorization|signature)`
	named  = `[\w.-]*` + word + `[\w.-]*`
	quoted = `"(?:[^"\\]|\\.)*"|\\+"[^"]*"|'[^']*'`
	plain  = gone + `|[^\s,;}\]&]+`
	pem    = `[A-Z ]*PRIVATE KEY-----`
)

// secrets are what is taken out, and what stays of it. Keys count in JSON, YAML, logs and command lines.
// The first one goes before those of keys, which would take the word before a token for all of it.
var secrets = []struct {
	found *regexp.Regexp
	stays string
}{
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} " + gone},
	{regexp.MustCompile(`\bbce-auth-v\d+/[^\s"'\\,]+`), gone},
	// An environment's variable in an object: its name is the value of another key.
	{regexp.MustCompile(`(?i)(\bname\\*"?\s*:\s*\\*"?` + named + `\\*"?(?:\s*,\s*|\s+)\\*"?value\\*"?\s*:\s*)(` + quoted + `|` + plain + `)`), "${1}" + gone},
	{regexp.MustCompile(`(?i)(--` + named + `(?:[ \t]+|\\*"\s*,\s*\\*"))[^\s"'\\]+`), "${1}" + gone},
	// In YAML a value without quotes is all of its line.
	{regexp.MustCompile(`(?im)(^[ \t]*(?:- )?` + named + `:[ \t]+)[^\s"'{\[|>&*][^\n]*`), "${1}" + gone},
	{regexp.MustCompile(`(?i)((?:\\n|")[ \t]*(?:- )?` + named + `:[ \t]+)[^\s"'{\[|>&*\\](?:[^\n"\\]|\\\\)*`), "${1}" + gone},
	{regexp.MustCompile(`(?i)("?` + named + `\\*"?\s*[:=]\s*)(` + quoted + `|\[[^\]\n]*\]|` + plain + `)`), "${1}" + gone},
	{regexp.MustCompile(`(?i)(<(?:\w*` + word + `\w*)>)[^<]*`), "${1}" + gone},
	{regexp.MustCompile(`\b(?:AKIA|ASIA|ALTAK)[A-Za-z0-9]{12,}\b`), gone},
	// All of a key, and one whose beginning or end is not in the part of a file that is packed.
	{regexp.MustCompile(`(?s)-----BEGIN ` + pem + `.*?-----END ` + pem), gone},
	{regexp.MustCompile(`-----BEGIN ` + pem + `(?:\\+[nr]|[A-Za-z0-9+/=\s])*`), gone},
	{regexp.MustCompile(`(?:\\+[nr]|[A-Za-z0-9+/=\s])*-----END ` + pem), gone},
	{regexp.MustCompile(`\bLS0tLS1CRUdJTi[A-Za-z0-9+/=]+`), gone}, // PEM in base64
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`), gone},
	{regexp.MustCompile(`(://)[^/\s"'\\<>?#]+@`), "${1}" + gone + "@"},
}

// redactText takes credentials out of a text. Names and addresses stay.
func redactText(text []byte) []byte {
	text = redactBlocks(text)
	for _, s := range secrets {
		text = s.found.ReplaceAll(text, []byte(s.stays))
	}
	return text
}

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
	for length < len(text) {
		from := length
		if length > 0 {
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
