package bundle

import (
	"strings"
	"testing"
)

func TestCredentialsAreTakenOutAndNothingElse(t *testing.T) {
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"
	for text, want := range map[string]string{
		`accessKey: abc123` + "\n" + `cluster: prod`:                    `accessKey: REDACTED` + "\n" + `cluster: prod`,
		`{"secretAccessKey":"a\"b,c","pod":"token-service-0"}`:          `{"secretAccessKey":REDACTED,"pod":"token-service-0"}`,
		`{"last":"{\"password\":\"hunter2\",\"mode\":\"batch\"}"}`:      `{"last":"{\"password\":REDACTED,\"mode\":\"batch\"}"}`,
		`db_password='x y' user=me`:                                     `db_password=REDACTED user=me`,
		"Authorization: Bearer abcdefghij.klm":                          "Authorization: REDACTED",
		`error="curl -H 'X: Bearer abcdefghij.klm'"`:                    `error="curl -H 'X: Bearer REDACTED'"`,
		"AKIAABCDEFGHIJKLMNOP is refused":                               "REDACTED is refused",
		"ALTAKabcdefghijklm is refused":                                 "REDACTED is refused",
		"tls.key: |\n  " + pem:                                          "tls.key: |\n  REDACTED",
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0xyz.sig-_9 is not current": "REDACTED is not current",
		"http://me:pass@10.0.0.1:8080/x":                                "http://REDACTED@10.0.0.1:8080/x",
		"10.0.0.11 eni-a used 3s shop/web-0 token bucket of 5":          "10.0.0.11 eni-a used 3s shop/web-0 token bucket of 5",
		"https://eks.example/healthz: 401":                              "https://eks.example/healthz: 401",
		"host veth eni3f9a01b2c4d: mtu 9001, fe80::1":                   "host veth eni3f9a01b2c4d: mtu 9001, fe80::1",
	} {
		if got := string(redactText([]byte(text))); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
}

// What is written in other forms than key and value on one line is found too.
func TestCredentialsAreTakenOutOfAllForms(t *testing.T) {
	for name, text := range map[string]string{
		"a variable of a pod":                 `{"env":[{"name":"AWS_SECRET_ACCESS_KEY","value":"wS3CRET"}]}`,
		"a variable of a pod, indented":       "{\n\"name\": \"BCE_SECRET_ACCESS_KEY\",\n\"value\": \"wS3CRET\"\n}",
		"a variable as it was applied":        `"last-applied-configuration":"{\"env\":[{\"name\":\"AWS_SECRET_ACCESS_KEY\",\"value\":\"wS3CRET\"}]}"`,
		"a variable in YAML":                  "- name: AWS_SESSION_TOKEN\n  value: wS3CRET\n",
		"a variable in a shell":               "BCE_ACCESS_KEY_ID=S3CRET API_KEY=S3CRET DB_PWD=S3CRET DB_PASS=S3CRET",
		"a kubeconfig":                        "client-key-data: LS0tS3CRET\n",
		"base64":                              "other: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBS3CRET==",
		"lines below":                         "token: |\n  abcS3CRET\n\n  S3CRET",
		"lines below, in an object":           `"agent.yaml":"cloud:\n  password: >-\n    S3CRET\n    S3CRET"`,
		"a comma":                             "password: ab,S3CRET\n",
		"blanks":                              "  - password: correct S3CRET\n",
		"blanks, in an object":                `"agent.yaml":"cloud:\n  password: correct S3CRET\n  x: y"`,
		"a list":                              `tokens: [a, S3CRET]`,
		"a list on lines of its own":          "tokens:\n  - S3CRET\n  - \"S3CRET\"\n  -\n    S3CRET\n  - >\n    S3CRET\n",
		"a list that is not further in":       "a:\n  passwords: # two\n  - S3CRET\n\n  - S3CRET\nb: c\n",
		"a list in a list":                    "- tokens:\n    - S3CRET\n    - - S3CRET\n",
		"a list, in an object":                `{"agent.yaml":"cloud:\n  tokens:\n  - S3CRET\n  - S3CRET","y":1}`,
		"a list in indented JSON":             "\"tokens\": [\n  \"a]: {\",\n  \"S3CRET\"\n]",
		"lines below an empty one":            "token: |\n\n  S3CRET\n",
		"a value on a line of its own":        "password:\n  S3CRET\n",
		"a short bearer token":                "curl -H 'X: Bearer S3CRET' and bearer S3CRET",
		"a short bearer token in JSON":        `{"h":"Bearer S3CRET"}`,
		"a URL with a slash":                  "https://user:pa/S3CRET@host and https://user:/S3CRET@host, git clone https://me:12/S3CRET@host/x",
		"a URL with a question mark":          `"proxy":"http://me:p?S3CRET@10.0.0.1:3128"`,
		"a sentence":                          "the password is S3CRET, and the token was 'S3CRET'; access key is S3CRET. password set to S3CRET",
		"a sentence with a colon":             `msg="sent with token: S3CRET to the cloud" error="the API key is: S3CRET"`,
		"a sentence without a verb":           "log in with password S3CRET1 (passphrase 'S3CRET')",
		"a command line":                      "enipool --token S3CRET --x",
		"arguments":                           `"args":["--token","S3CRET"]`,
		"a URL without a password":            "https://S3CRET@host/x",
		"a URL without a user":                "redis://:S3CRET@host/x",
		"a URL with another @":                "http://me:pa@S3CRET@host/x",
		"a private key without its end":       "-----BEGIN RSA PRIVATE KEY-----\nMIIES3CRET\nabc",
		"a private key without its beginning": "MIIES3CRET\nMIIES3CRET\n-----END RSA PRIVATE KEY-----",
		"XML":                                 "<Credentials><SecretAccessKey>S3CRET</SecretAccessKey></Credentials>",
		"a signature of Baidu":                "sent bce-auth-v1/0123456789abcdef/2026-01-01T00:00:00Z/1800/host/S3CRET",
	} {
		if got := string(redactText([]byte(text))); strings.Contains(got, "S3CRET") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for text, want := range map[string]string{
		"a:\n  token: |\n    abc\n\n    def\n  pods: 3\nb: 1\n":           "a:\n  token: REDACTED\n  pods: 3\nb: 1\n",
		`{"x":"token: |\n  abc\n  def\nb: 1\n","y":2}`:                    `{"x":"token: REDACTED\nb: 1\n","y":2}`,
		`{"x":"token: |\n  abc","y":2}`:                                   `{"x":"token: REDACTED","y":2}`,
		"token: |\nb: 1":                                                  "token: REDACTED\nb: 1",
		"tokens:\n  - abc\n  - def\npods: 3\n":                            "tokens:\n  - REDACTED\n  - REDACTED\npods: 3\n",
		"- tokens:\n- eni-a\n":                                            "- tokens:\n- eni-a\n",
		`{"x":"tokens:\n- abc\nb: 1","y":["eni-a"]}`:                      `{"x":"tokens:\n- REDACTED\nb: 1","y":["eni-a"]}`,
		"imagePullSecrets:\n- name: registry\nnodeName: n1\n":             "imagePullSecrets:\n- name: registry\nnodeName: n1\n",
		"secretRef:\n  name: shop-db\n":                                   "secretRef:\n  name: shop-db\n",
		"https://user:pa/ss@host/x and https://h/y@z":                     "https://REDACTED@host/x and https://h/y@z",
		"docker-pullable://registry:5000/enipool/enipool@sha256:0f0f":     "docker-pullable://registry:5000/enipool/enipool@sha256:0f0f",
		"http://10.0.0.1:8080/users/me@shop http://[fd00::1]:80/a@b":      "http://10.0.0.1:8080/users/me@shop http://[fd00::1]:80/a@b",
		"the token is expired, the password was wrong. token is not":      "the token is expired, the password was wrong. token is not",
		`Bearer token refused, WWW-Authenticate: Bearer realm="x"`:        `Bearer token refused, WWW-Authenticate: Bearer realm="x"`,
		`secret "shop-db-1" of shop/web-0 is not found`:                   `secret "shop-db-1" of shop/web-0 is not found`,
		`{"env":[{"name":"NODE_NAME","value":"n1"}]}`:                     `{"env":[{"name":"NODE_NAME","value":"n1"}]}`,
		"containerd://abc, registry:5000/enipool/enipool@sha256:0f0f":     "containerd://abc, registry:5000/enipool/enipool@sha256:0f0f",
		`eni-a attached --to n1, name: token-service-0 node: n1 value: 3`: `eni-a attached --to n1, name: token-service-0 node: n1 value: 3`,
	} {
		if got := string(redactText([]byte(text))); got != want {
			t.Errorf("%q\nbecomes %q\nwant    %q", text, got, want)
		}
	}
}
