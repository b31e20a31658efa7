package bundle

import "regexp"

// gone stands where a secret was.
const gone = "REDACTED"

// secrets are what is taken out, and what stays of it. Keys count in JSON, YAML, logs and command lines.
// The first one goes before the second, which would take the word before a token for all of it.
var secrets = []struct {
	found *regexp.Regexp
	stays string
}{
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} " + gone},
	{regexp.MustCompile(`(?i)("?[\w.-]*(?:secret|password|passwd|token|credential|api-?key|access-?key|accesskey|private-?key|authorization|signature)[\w.-]*\\*"?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|\\+"[^"\\]*\\+"|'[^']*'|[^\s,;}\]&]+)`), "${1}" + gone},
	{regexp.MustCompile(`\b(?:AKIA|ASIA|ALTAK)[A-Za-z0-9]{12,}\b`), gone},
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`), gone},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`), gone},
	{regexp.MustCompile(`(://)[^/\s:@"]+:[^/\s@"]+@`), "${1}" + gone + "@"},
}

// redactText takes credentials out of a text. Names and addresses stay.
func redactText(text []byte) []byte {
	for _, s := range secrets {
		text = s.found.ReplaceAll(text, []byte(s.stays))
	}
	return text
}
