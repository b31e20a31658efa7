package bce

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key is an access key. Temporary ones have a token and an end.
type key struct {
	id, secret, token string
	ends              time.Time
}

// authorization is the parts of the header: "bce-auth-v1/KEY/TIME/SECONDS/HEADERS/
// SIGNATURE".
type authorization struct {
	prefix, id, headers, signature string
	from, until                    time.Time
}

func parseAuthorization(text string) (authorization, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 6 || parts[0] != "bce-auth-v1" {
		return authorization{}, false
	}
	from, err := time.Parse("2006-01-02T15:04:05Z", parts[2])
	seconds, badly := strconv.Atoi(parts[3])
	if err != nil || badly != nil || seconds < 1 {
		return authorization{}, false
	}
	return authorization{prefix: strings.Join(parts[:4], "/"), id: parts[1], headers: parts[4], signature: parts[5],
		from: from, until: from.Add(time.Duration(seconds) * time.Second)}, true
}

// skew is by how much a clock may be wrong.
const skew = 15 * time.Minute

// authenticate checks the signature of a request, if there are keys at all.
func (e *Endpoint) authenticate(r *http.Request) error {
	e.mu.Lock()
	open := len(e.keys) == 0 && !e.o.Role
	e.mu.Unlock()
	if open {
		return nil
	}
	text := r.Header.Get("Authorization")
	if text == "" {
		return refuse("AccessDenied", http.StatusForbidden, "Access denied.")
	}
	a, ok := parseAuthorization(text)
	if !ok {
		return refuse("InvalidHTTPAuthHeader", http.StatusBadRequest,
			"The HTTP authorization header is invalid. Consult the service documentation for details.")
	}
	e.mu.Lock()
	k, known := e.keys[a.id]
	e.mu.Unlock()
	now := e.a.Clock().Now()
	switch {
	case !known:
		return refuse("InvalidAccessKeyId", http.StatusForbidden, "The Access Key ID you provided does not exist in our records.")
	case a.from.After(now.Add(skew)) || a.until.Before(now) || !k.ends.IsZero() && k.ends.Before(now):
		return refuse("RequestExpired", http.StatusBadRequest, "Request has expired. Timestamp date is %s.", a.from.Format(time.RFC3339))
	case !hmac.Equal([]byte(a.signature), []byte(signature(r, a, k.secret))) || r.Header.Get("X-Bce-Security-Token") != k.token:
		return refuse("SignatureDoesNotMatch", http.StatusForbidden, "The request signature we calculated does not match the "+
			"signature you provided. Check your Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

// signature is what the request's must be.
func signature(r *http.Request, a authorization, secret string) string {
	canonical := strings.Join([]string{r.Method, canonicalPath(r), canonicalQuery(r), canonicalHeaders(r, a.headers)}, "\n")
	return mac(mac(secret, a.prefix), canonical)
}

func mac(secret, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

func canonicalPath(r *http.Request) string { return encode(r.URL.Path, true) }

func canonicalQuery(r *http.Request) string {
	var items []string
	for name, values := range r.URL.Query() {
		for _, value := range values {
			if !strings.EqualFold(name, "authorization") {
				items = append(items, encode(name, false)+"="+encode(value, false))
			}
		}
	}
	slices.Sort(items)
	return strings.Join(items, "&")
}

// defaultHeaders are signed where the authorization names none, with all x-bce-.
const defaultHeaders = "content-length;content-md5;content-type;host"

func canonicalHeaders(r *http.Request, names string) string {
	list := strings.Split(names, ";")
	if names == "" {
		list = strings.Split(defaultHeaders, ";")
		for name := range r.Header {
			if name = strings.ToLower(name); strings.HasPrefix(name, "x-bce-") {
				list = append(list, name)
			}
		}
	}
	var lines []string
	for _, name := range list {
		if value := strings.TrimSpace(header(r, name)); value != "" {
			lines = append(lines, encode(strings.ToLower(name), false)+":"+encode(value, false))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// header returns a header with those that net/http keeps elsewhere.
func header(r *http.Request, name string) string {
	switch {
	case strings.EqualFold(name, "host"):
		return r.Host
	case strings.EqualFold(name, "content-length") && r.ContentLength > 0:
		return strconv.FormatInt(r.ContentLength, 10)
	}
	return r.Header.Get(name)
}

// encode escapes all but letters, digits and "-_.~", and "/" of paths.
func encode(text string, path bool) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		switch {
		case b >= 'A' && b <= 'Z', b >= 'a' && b <= 'z', b >= '0' && b <= '9', strings.IndexByte("-_.~", b) >= 0, path && b == '/':
			out.WriteByte(b)
		default:
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}
