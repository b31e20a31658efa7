package ec2

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key is a secret access key; of temporary ones there is also a token, and an end.
type key struct {
	secret, token string
	expires       time.Time
}

// maxSkew is how far the clock of a caller may be off.
const maxSkew = 5 * time.Minute

// The forms of time in a signature.
const (
	longTime  = "20060102T150405Z"
	shortTime = "20060102"
)

// signature is what the Authorization header says.
type signature struct {
	id, date, region, service string
	headers                   []string
	value                     string
}

// authenticate checks who signed the request, if anybody's key is known at all.
func (e *Endpoint) authenticate(r *http.Request, body []byte) error {
	if len(e.o.Keys) == 0 && e.o.Role == "" {
		return nil
	}
	failure := refuse("AuthFailure", "AWS was not able to validate the provided access credentials")
	header := r.Header.Get("Authorization")
	if header == "" {
		return refuse("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	s, ok := parseSignature(header)
	if !ok {
		return refuse("IncompleteSignature", "The request signature does not conform to AWS standards.")
	}
	e.mu.Lock()
	k, known := e.keys[s.id]
	e.mu.Unlock()
	at, err := time.Parse(longTime, r.Header.Get("X-Amz-Date"))
	now := e.a.Clock().Now()
	switch {
	case !known || k.token != r.Header.Get("X-Amz-Security-Token"):
		return failure
	case err != nil || at.Format(shortTime) != s.date:
		return refuse("IncompleteSignature", "The date of the request does not fit its signature.")
	case at.Sub(now).Abs() > maxSkew:
		return refuse("RequestExpired", "Request has expired.")
	case !k.expires.IsZero() && now.After(k.expires):
		return refuse("RequestExpired", "Request has expired.")
	case s.service != "ec2" || s.region != e.a.Options().Region || !hmac.Equal([]byte(s.of(r, body, k.secret)), []byte(s.value)):
		return failure
	}
	return nil
}

// parseSignature reads an Authorization header.
func parseSignature(header string) (signature, bool) {
	rest, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	fields := map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	if !ok || len(scope) != 5 || scope[4] != "aws4_request" {
		return signature{}, false
	}
	s := signature{id: scope[0], date: scope[1], region: scope[2], service: scope[3],
		headers: strings.Split(fields["SignedHeaders"], ";"), value: fields["Signature"]}
	return s, slices.Contains(s.headers, "host") && slices.Contains(s.headers, "x-amz-date")
}

// of returns the signature that the request must have, by the steps of "Signature
// Version 4": canonical request, string to sign, derived key.
func (s signature) of(r *http.Request, body []byte, secret string) string {
	lines := []string{r.Method, cmp.Or(r.URL.EscapedPath(), "/"), canonicalQuery(r.URL.Query())}
	for _, name := range s.headers {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = cmp.Or(value, contentLength(r))
		}
		lines = append(lines, name+":"+strings.Join(strings.Fields(value), " "))
	}
	lines = append(lines, "", strings.Join(s.headers, ";"), digest(body))
	scope := strings.Join([]string{s.date, s.region, s.service, "aws4_request"}, "/")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope,
		digest([]byte(strings.Join(lines, "\n")))}, "\n")
	k := []byte("AWS4" + secret)
	for _, part := range []string{s.date, s.region, s.service, "aws4_request", toSign} {
		mac := hmac.New(sha256.New, k)
		mac.Write([]byte(part))
		k = mac.Sum(nil)
	}
	return hex.EncodeToString(k)
}

// canonicalQuery sorts and escapes the URL's parameters.
func canonicalQuery(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

// contentLength is the header that net/http keeps apart from the others.
func contentLength(r *http.Request) string {
	return strconv.FormatInt(r.ContentLength, 10)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
