package bundle

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// forms are how secrets stand in files; %s is one.
var forms = []string{
	"password: %s", "  - token: %s", "secretAccessKey: %q", "db_password='%s'", "API_KEY=%s", `{"accessKey":%q,"x":1}`, `"args":["--token",%q]`, "run --client-secret %s --x",
	`{"name":"AWS_SECRET_ACCESS_KEY","value":%q}`, "- name: BCE_TOKEN\n  value: %s", "tokens: [a, %s]", "tokens:\n- %s", "a:\n  passwords:\n    - %s\n    - %s", "token: |\n  %s\n  %s",
	"password:\n  %s", "Authorization: Bearer %s", "X: Bearer %s", "https://user:%s@host/x", "https://user:a/%s@host/x", "redis://:%s@host", "password is %s.", "the token was '%s'",
	"sent with token: %s to it", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0xyz.%s", "bce-auth-v1/0123/%s", "<SecretKey>%s</SecretKey>", "-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----",
}

// innocent are lines of what a bundle is about.
var innocent = []string{"10.0.0.11 eni-0a1b2c used 3s shop/web-0", "node ip-10-0-0-7.eu-west-3.compute.internal: ready", "subnet-0f1e of vpc-1 has 12 free", "fd00::11 on eth1", "level=INFO msg=\"ADD took 3ms\" pod=shop/web-1"}

// No secret shows, whatever form it has, wherever that stands, and what the lines around it tell stays.
func TestNoSecretShowsInAnyForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9]{2,6}[A-Za-z0-9_-]{0,12}[0-9]Z`).Draw(t, "secret")
		line := rapid.SampledFrom(innocent)
		form := rapid.SampledFrom(forms).Draw(t, "form")
		args := make([]any, strings.Count(form, "%"))
		for i := range args {
			args[i] = secret
		}
		before, after := line.Draw(t, "before"), line.Draw(t, "after")
		text := before + "\n" + fmt.Sprintf(form, args...) + "\n" + after + "\n"
		for range rapid.IntRange(0, 1).Draw(t, "within an object") {
			inner, err := json.Marshal(map[string]string{"agent.yaml": text})
			if err != nil {
				t.Fatal(err)
			}
			text = string(inner)
			before, after = strings.ReplaceAll(before, `"`, `\"`), strings.ReplaceAll(after, `"`, `\"`)
		}
		got := string(redactText([]byte(text)))
		if strings.Contains(got, secret) {
			t.Errorf("%q shows %s: %q", text, secret, got)
		}
		if !strings.Contains(got, before) || !strings.Contains(got, after) {
			t.Errorf("%q lost what is around: %q", text, got)
		}
	})
}

// Whatever stands around it, a secret behind its key does not show, and nothing makes it fail.
func FuzzNoSecretShowsWhateverIsAroundIt(f *testing.F) {
	for _, form := range forms {
		text := strings.NewReplacer("%s", "abc", "%q", `"abc"`).Replace(form)
		f.Add(text, text)
		f.Add(strings.ReplaceAll(text, "\n", `\n`), text)
	}
	const secret = "hunter2-S3CRET-9"
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + "\npassword: " + secret + "\n" + after
		if got := string(redactText([]byte(text))); strings.Contains(got, secret) && !strings.Contains(before+after, secret) {
			t.Errorf("%q shows it: %q", text, got)
		}
	})
}
