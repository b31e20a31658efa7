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

// codeAndMessage returns EC2's code and message, with the HTTP status in the place of either
// that is missing.
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

// statusLine writes an HTTP status in words.
func statusLine(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// noCredentials is how the SDK's text begins if it has no credentials.
const noCredentials = "get credentials: "

// narration is what the SDK tells of its own steps before it comes to what went wrong.
var narration = regexp.MustCompile(`operation error \w+: \w+, |exceeded maximum number of attempts, \d+, |request send failed, |` +
	`failed to (get API token|refresh cached credentials), |, request to EC2 IMDS failed`)

// withoutNarration leaves the narration out.
func withoutNarration(text string) string { return narration.ReplaceAllString(text, "") }

// unansweredText says what went wrong with a request that EC2 itself did not answer. It goes by
// the types of the SDK's errors, because their texts begin with the operation, the number of
// attempts, a status of 0 and an empty request ID.
func unansweredText(err error, sent bool) string {
	if _, why, found := strings.Cut(err.Error(), noCredentials); found {
		return "not sent, without credentials: " + withoutNarration(why)
	}
	var response *smithyhttp.ResponseError
	var garbled *smithy.DeserializationError
	var asked *url.Error
	switch {
	case contextEnded(err) && sent:
		return "given up before the answer came"
	case contextEnded(err):
		return "given up before the call"
	case errors.As(err, &response) && response.HTTPStatusCode() > 0 && errors.As(err, &garbled):
		return statusLine(response.HTTPStatusCode()) + ", and the answer " + unreadText(garbled)
	case errors.As(err, &asked) && sent:
		return fmt.Sprintf("no answer from %s: %s", asked.URL, brokenText(asked.Err))
	case errors.As(err, &asked):
		return fmt.Sprintf("not sent to %s: %s", asked.URL, brokenText(asked.Err))
	}
	text := err.Error()
	for _, mark := range []string{"request send failed, ", "operation error EC2: "} {
		if _, after, found := strings.Cut(text, mark); found {
			return after
		}
	}
	return text
}

// unreadText says why an answer could not be read to its end. "use of closed network
// connection" after a status of success is no mistake in this package: the SDK reads the rest
// of a body and closes it, and the connection may end meanwhile.
func unreadText(garbled *smithy.DeserializationError) string {
	cause := garbled.Err
	if inner := errors.Unwrap(cause); inner != nil {
		cause = inner // "failed to decode response body, ..."
	}
	if cause == nil {
		return "can't be read"
	}
	if breaksOff(cause) {
		return "breaks off: " + brokenText(cause)
	}
	return fmt.Sprintf("can't be read: %v", cause)
}

// breaksOff tells whether an answer has ended before its end.
func breaksOff(cause error) bool {
	return isNetwork(cause) || errors.Is(cause, net.ErrClosed) || errors.Is(cause, io.ErrUnexpectedEOF) || errors.Is(cause, io.EOF)
}

// brokenText says how a connection ended, in one way for the errors that all mean "closed".
func brokenText(err error) string {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was closed"
	}
	return err.Error()
}
