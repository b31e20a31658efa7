package operator

import "strings"

// Shorten cuts what the API server would refuse as too long: a message of a condition or an event has 1024 bytes at most.
func Shorten(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..." // a letter that is cut in two goes
}
