package sim

import (
	"net/http"
	"strconv"
)

// Answer is how the answer of a call reaches its caller. Wire formats send what
// they have made of a call by Send.
type Answer struct {
	Break   Break
	Rewrite func(body []byte) []byte
}

// Send writes the answer, or as much of it as its fault leaves. The header is the
// caller's to set before.
func (n Answer) Send(to http.ResponseWriter, status int, body []byte) {
	if n.Rewrite != nil {
		body = n.Rewrite(body)
	}
	switch n.Break {
	case Lost:
		panic(http.ErrAbortHandler) // net/http closes the connection without a word
	case Short:
		body = body[:len(body)/2]
	}
	to.Header().Set("Content-Length", strconv.Itoa(len(body)))
	to.WriteHeader(status)
	if n.Break == Cut {
		_, _ = to.Write(body[:len(body)/2])
		_ = http.NewResponseController(to).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = to.Write(body) // a caller that has gone does not hear of it
}
