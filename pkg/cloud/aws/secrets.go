package aws

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// secrets knows the credentials in use, so that no text that leaves the package has
// them. The zero secrets knows none.
type secrets struct {
	mu    sync.Mutex
	known []string // of the newest ones
}

// watch returns the provider's credentials and keeps them in mind.
func (s *secrets) watch(from aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		got, err := from.Retrieve(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.known = []string{got.SecretAccessKey, got.SessionToken, got.AccessKeyID}
		}
		return got, err
	})
}

// What the other side may answer with: the ID of a key, the signature of a request,
// the encoded reason of a refusal.
var sensitive = regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{8,}|(Credential|Signature|SignedHeaders)=\S+|[A-Za-z0-9+/_=-]{64,}`)

// redact returns the text without credentials.
func (s *secrets) redact(text string) string {
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	for _, secret := range known {
		if len(secret) > 3 {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return sensitive.ReplaceAllString(text, "***")
}
