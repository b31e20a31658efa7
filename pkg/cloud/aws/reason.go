package aws

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// sdkUnknown is what the SDK makes up as code or message where the answer has none.
const sdkUnknown = "UnknownError"

// codeAndMessage are EC2's code and message, and the HTTP status in the place of what is missing:
// what stands between EC2 and the node answers with a status alone, or with a page.
func codeAndMessage(said smithy.APIError, status int) string {
	code, message := said.ErrorCode(), said.ErrorMessage()
	if code == sdkUnknown {
		code = ""
	}
	if message == sdkUnknown {
		message = ""
	}
	switch {
	case code != "" && message != "":
		return code + ": " + message
	case code != "":
		return code + ": " + statusLine(status)
	case message != "":
		return statusLine(status) + ": " + message
	}
	return statusLine(status) + ", and no error of EC2 with it"
}

// statusLine is an HTTP status in words.
func statusLine(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// noCredentials is how the SDK begins to say why it has none.
const noCredentials = "get credentials: "

// narration is what the SDK tells of its own steps before it comes to what went wrong.
var narration = regexp.MustCompile(`operation error \w+: \w+, |exceeded maximum number of attempts, \d+, |request send failed, |` +
	`failed to (get API token|refresh cached credentials), |, request to EC2 IMDS failed`)

// withoutNarration leaves the narration out.
func withoutNarration(text string) string { return narration.ReplaceAllString(text, "") }

// reason says what went wrong where EC2 itself said nothing. It goes by the types of the
// SDK's errors: their texts begin with operation, number of attempts, a status of 0 and an
// empty request ID.
func reason(err error, sent bool) string {
	if _, why, found := strings.Cut(err.Error(), noCredentials); found {
		return "not sent, without credentials: " + withoutNarration(why)
	}
	var response *smithyhttp.ResponseError
	var garbled *smithy.DeserializationError
	var asked *url.Error
	switch {
	case ended(err) && sent:
		return "given up before the answer came"
	case ended(err):
		return "given up before the call"
	case errors.As(err, &response) && response.HTTPStatusCode() > 0 && errors.As(err, &garbled):
		return statusLine(response.HTTPStatusCode()) + ", and the answer " + unread(garbled)
	case errors.As(err, &asked) && sent:
		return fmt.Sprintf("no answer from %s: %s", asked.URL, broken(asked.Err))
	case errors.As(err, &asked):
		return fmt.Sprintf("not sent to %s: %s", asked.URL, broken(asked.Err))
	}
	text := err.Error()
	for _, mark := range []string{"request send failed, ", "operation error EC2: "} {
		if _, after, found := strings.Cut(text, mark); found {
			return after
		}
	}
	return text
}

// unread says why an answer could not be read to its end. "use of closed network
// connection" after a status of success is no misuse of ours: the SDK reads what is left
// of a body and closes it, and the connection ends under it.
func unread(garbled *smithy.DeserializationError) string {
	cause := garbled.Err
	if inner := errors.Unwrap(cause); inner != nil {
		cause = inner // "failed to decode response body, ..."
	}
	if cause == nil {
		return "can't be read"
	}
	if breaksOff(cause) {
		return "breaks off: " + broken(cause)
	}
	return fmt.Sprintf("can't be read: %v", cause)
}

// breaksOff tells whether an answer has ended before its end.
func breaksOff(cause error) bool {
	return isNetwork(cause) || errors.Is(cause, net.ErrClosed) || errors.Is(cause, io.ErrUnexpectedEOF) || errors.Is(cause, io.EOF)
}

// broken says how a connection ended.
func broken(err error) string {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was closed"
	}
	return err.Error()
}
