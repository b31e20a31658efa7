package bundle

import (
	"bytes"
	"regexp"
	"strings"
)

// gone stands where a secret was.
const gone = "REDACTED"

// What the patterns are made of. Quotes and ends of lines may be escaped: an object holds the text that it was made from, and a ConfigMap files.
const (
	start  = `(?:\\[nrt]|\b)` // of a word: before it may be the escaped end of a line
	word   = `(?:secret|password|passwd|passphrase|[_-]pass\b|[_-]pwd\b|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|client-key-data|authorization|signature)`
	named  = `[\w.-]*` + word + `[\w.-]*`
	quoted = `"(?:[^"\\]|\\.)*"|\\+"[^"]*"|'[^']*'`
	plain  = gone + `|(?:[^\s,;}\]&\\]|\\+[^\\\snrt])+` // an escaped end of a line is no part of it
	list   = `\[[^\]\n]*\]|\[(?:[^\]\["{}:]|"(?:[^"\\]|\\.)*")*\]`
	pem    = `[A-Z ]*PRIVATE KEY-----`
)

// secrets are what is taken out, and what stays of it. Keys count in JSON, YAML, logs and command lines.
// The first one goes before those of keys, which would take the word before a token for all of it.
var secrets = []struct {
	found *regexp.Regexp
	stays string
}{
	{regexp.MustCompile(`(?i)(` + start + `basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} " + gone},
	{regexp.MustCompile(`(` + start + `)bce-auth-v\d+/[^\s"'\\,]+`), "${1}" + gone},
	// An environment's variable in an object: its name is the value of another key.
	{regexp.MustCompile(`(?i)(` + start + `name\\*"?\s*:\s*\\*"?` + named + `\\*"?(?:\s*,\s*|(?:\s|\\+[nrt])+)\\*"?value\\*"?\s*:\s*)(` + quoted + `|` + plain + `)`), "${1}" + gone},
	{regexp.MustCompile(`(?i)(--` + named + `(?:[ \t]+|\\*"\s*,\s*\\*"))[^\s"'\\]+`), "${1}" + gone},
	// In YAML a value without quotes is all of its line, within an object too.
	{regexp.MustCompile(`(?i)((?:\\n|")[ \t]*(?:- )?` + named + `:[ \t]+)[^\s"'{\[|>&*\\](?:[^\n"\\]|\\\\)*`), "${1}" + gone},
	{regexp.MustCompile(`(?i)("?` + named + `\\*"?[ \t]*[:=][ \t]*)(` + quoted + `|` + list + `|` + plain + `)`), "${1}" + gone},
	{regexp.MustCompile(`(?i)((?:<|\\+u003c)(?:\w*` + word + `\w*)(?:>|\\+u003e))(?:[^<\\]|\\+[^\\u])*`), "${1}" + gone},
	{regexp.MustCompile(`(` + start + `)(?:AKIA|ASIA|ALTAK)[A-Za-z0-9]{12,}\b`), "${1}" + gone},
	// All of a key, and one whose beginning or end is not in the part of a file that is packed.
	{regexp.MustCompile(`(?s)-----BEGIN ` + pem + `.*?-----END ` + pem), gone},
	{regexp.MustCompile(`-----BEGIN ` + pem + `(?:\\+[nr]|[A-Za-z0-9+/=\s])*`), gone},
	{regexp.MustCompile(`(?:\\+[nr]|[A-Za-z0-9+/=\s])*-----END ` + pem), gone},
	{regexp.MustCompile(`(` + start + `)LS0tLS1CRUdJTi[A-Za-z0-9+/=]+`), "${1}" + gone}, // PEM in base64
	{regexp.MustCompile(`(` + start + `)eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`), "${1}" + gone},
	{regexp.MustCompile(`(://)[^/\s"'\\<>?#]+@`), "${1}" + gone + "@"},
}

// unless are secrets by their form whose first part is kept, unless what looks like the secret is a word that says something of one.
var unless = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(` + start + `bearer\s+)([A-Za-z0-9._~+/=-]+)`),
	regexp.MustCompile(`(?i)(` + start + `(?:secret|password|passwd|passphrase|token|credential|(?:api|access|private)[ _-]key)s?\s+(?:is|was|are|were|set to|changed to)(?:\s+|:\s*|\s*=\s*))(` + quoted + `|[^\s"'\\,;)}\]]+)`),
	regexp.MustCompile(`(?i)(` + start + `(?:password|passwd|passphrase)\s+)(` + quoted + `|[^\s"'\\,;)}\]:=]*[0-9][^\s"'\\,;)}\]]*)`),
}

// saying are words that follow those of secrets in sentences, and are none.
var saying = " a absent accepted already an and auth authentication authorization available bad by configured correct corrupt credential credentials denied disabled due empty enabled expired " +
	"expiring for found from given gone ignored in incorrect incomplete invalid known left longer malformed mandatory missing needed neither never new no nor not of off old on only optional out " +
	"present read ready refused rejected renewed requested required revoked rotated scheme set short stale still that the there to token tokens too unauthorized unchanged under unknown unset unusable " +
	"unreadable used valid with without written wrong "

// redactUnless takes out what such a form has, where it is none of those words.
func redactUnless(text []byte, form *regexp.Regexp) []byte {
	var out []byte
	from := 0
	for _, at := range form.FindAllSubmatchIndex(text, -1) {
		value := strings.ToLower(strings.TrimRight(string(text[at[4]:at[5]]), ".!?"))
		if strings.Contains(saying, " "+value+" ") || strings.HasPrefix(value, "realm=") {
			continue
		}
		out, from = append(append(out, text[from:at[4]]...), gone...), at[5]
	}
	return append(out, text[from:]...)
}

// userPart is what may be the user part of a URL whose password has a slash, or an address with a port and a path with an @.
var userPart = regexp.MustCompile(`://([^/\s"'\\<>?#:@\[]*):([^/?#\s"'\\<>@]*)[/?#][^\s"'\\<>@]*@(sha256:)?`)

// redactUserParts takes out user parts of URLs with passwords that have to be escaped and are not. A number before the slash is a port where the name
// before it has a dot, or a digest follows.
func redactUserParts(text []byte) []byte {
	var out []byte
	from := 0
	for _, at := range userPart.FindAllSubmatchIndex(text, -1) {
		user, first := text[at[2]:at[3]], text[at[4]:at[5]]
		isPort := len(bytes.Trim(first, "0123456789")) == 0
		if isPort && (bytes.ContainsRune(user, '.') || at[6] >= 0) {
			continue
		}
		end := at[1]
		if at[6] >= 0 {
			end = at[6]
		}
		out, from = append(append(out, text[from:at[2]]...), gone+"@"...), end
	}
	return append(out, text[from:]...)
}

// ownLine is a key with its value on one line, in YAML. What stands in the lines around it can't make it anything else, so it is taken out first: a form that
// goes over lines would take the key for a value, and leave what follows. A comment is no value.
var ownLine = regexp.MustCompile(`(?im)(^[ \t]*(?:- )?` + named + `:[ \t]+)[^\s"'{\[|>&*#][^\n]*`)

// redactText takes credentials out of a text. Names and addresses stay.
func redactText(text []byte) []byte {
	text = ownLine.ReplaceAll(text, []byte("${1}"+gone))
	text = redactUserParts(redactLists(redactBlocks(text)))
	for _, form := range unless {
		text = redactUnless(text, form)
	}
	for _, s := range secrets {
		text = s.found.ReplaceAll(text, []byte(s.stays))
	}
	return text
}
