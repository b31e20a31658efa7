package bce

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud/wire"
)

// Credentials sign calls. Printed, they show none of their words.
type Credentials struct {
	AccessKey, SecretKey string
	SessionToken         string    // of temporary ones
	Expires              time.Time // the zero Time: never
}

// String hides the credentials from logs.
func (Credentials) String() string { return "(credentials)" }

// GoString hides them from %#v.
func (Credentials) GoString() string { return "(credentials)" }

// MarshalJSON hides them from files and structured logs.
func (Credentials) MarshalJSON() ([]byte, error) { return []byte(`"(credentials)"`), nil }

// source returns credentials. It is asked again when they are about to expire.
type source func(context.Context) (Credentials, error)

// usualSource returns a source that looks where Baidu's tools do, because the SDK itself looks nowhere:
//
//  1. BCE_ACCESS_KEY_ID and BCE_SECRET_ACCESS_KEY, with BCE_SESSION_TOKEN for
//     temporary ones;
//  2. ~/.go-bcecli/credentials, which bcecmd writes;
//  3. the role of the instance, by its metadata service.
//
// The first that exists counts, even if it is wrong.
func usualSource(m metadata) source {
	return func(ctx context.Context) (Credentials, error) {
		for _, from := range []func() (Credentials, error){fromEnv, fromFile} {
			if c, err := from(); err != nil || c.AccessKey != "" {
				return c, err
			}
		}
		return m.roleCredentials(ctx)
	}
}

func fromEnv() (Credentials, error) {
	c := Credentials{AccessKey: os.Getenv("BCE_ACCESS_KEY_ID"), SecretKey: os.Getenv("BCE_SECRET_ACCESS_KEY"),
		SessionToken: os.Getenv("BCE_SESSION_TOKEN")}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return Credentials{}, errors.New("set both of BCE_ACCESS_KEY_ID and BCE_SECRET_ACCESS_KEY, or none")
	}
	return c, nil
}

func fromFile() (Credentials, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Credentials{}, nil // there is no home, so there is no file
	}
	name := filepath.Join(home, ".go-bcecli", "credentials")
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return Credentials{}, nil
	}
	if err != nil {
		return Credentials{}, err
	}
	c := parseFile(string(text))
	if c.AccessKey == "" || c.SecretKey == "" {
		return Credentials{}, fmt.Errorf("%s: wants Ak and Sk in section [Defaults]", name)
	}
	return c, nil
}

// parseFile reads the section [Defaults] of bcecmd's file.
func parseFile(text string) (found Credentials) {
	section := ""
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		line := strings.TrimSpace(scan.Text())
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(section, "[Defaults]") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "ak":
			found.AccessKey = value
		case "sk":
			found.SecretKey = value
		case "sts":
			found.SessionToken = value
		}
	}
	return found
}

// ahead is how long before their end credentials are renewed; roleAge is how often
// those of a role are, which the cloud replaces every five minutes.
const (
	ahead   = 2 * time.Minute
	roleAge = 4 * time.Minute
)

// roleCredentials asks the metadata service for the credentials of the instance's role. Its
// answer has the format of the security token service's.
func (m metadata) roleCredentials(ctx context.Context) (Credentials, error) {
	text, err := m.get(ctx, "/latest/meta-data/sts-credential")
	if err != nil {
		return Credentials{}, fmt.Errorf("none in the environment or a file, nor of a role of the instance: %w", err)
	}
	var answer struct{ AccessKeyID, SecretAccessKey, SessionToken, Expiration string }
	// the decoder's own words would quote what it could not read
	if json.Unmarshal([]byte(text), &answer) != nil || answer.AccessKeyID == "" || answer.SecretAccessKey == "" {
		return Credentials{}, errors.New("the metadata service's credentials are unreadable")
	}
	c := Credentials{AccessKey: answer.AccessKeyID, SecretKey: answer.SecretAccessKey, SessionToken: answer.SessionToken,
		Expires: time.Now().Add(roleAge + ahead)}
	if end, err := time.Parse(time.RFC3339, answer.Expiration); err == nil && end.Before(c.Expires) {
		c.Expires = end
	}
	return c, nil
}

// keyring keeps credentials until they run out, and hides them, and those before them, in texts.
type keyring struct {
	wire.Secrets
	source source

	mu      sync.Mutex
	now     Credentials
	refused bool // the cloud has refused now: it may have run out early
}

func (k *keyring) get(ctx context.Context) (Credentials, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.refused && k.now.validFor(ahead) {
		return k.now, nil
	}
	fresh, err := k.source(ctx)
	switch {
	case err != nil && k.now.validFor(0):
		return k.now, nil // the cloud says whether it still takes them
	case err != nil:
		return Credentials{}, err
	}
	if fresh.AccessKey == "" || fresh.SecretKey == "" {
		return Credentials{}, errors.New("the source of credentials has none")
	}
	k.now, k.refused = fresh, false
	k.Keep(fresh.AccessKey, fresh.SecretKey, fresh.SessionToken)
	return fresh, nil
}

// markRefused notes that the cloud has refused these credentials, so that the next call asks the
// source again. It does nothing if others have come meanwhile.
func (k *keyring) markRefused(c Credentials) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = k.refused || k.now == c
}

// validFor tells whether there are credentials that are good for at least this long.
func (c Credentials) validFor(left time.Duration) bool {
	return c.AccessKey != "" && (c.Expires.IsZero() || time.Until(c.Expires) > left)
}
