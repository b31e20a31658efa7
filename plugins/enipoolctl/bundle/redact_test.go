package bundle

import "testing"

func TestCredentialsAreTakenOutAndNothingElse(t *testing.T) {
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"
	for text, want := range map[string]string{
		`accessKey: abc123` + "\n" + `cluster: prod`:                    `accessKey: REDACTED` + "\n" + `cluster: prod`,
		`{"secretAccessKey":"a\"b,c","pod":"token-service-0"}`:          `{"secretAccessKey":REDACTED,"pod":"token-service-0"}`,
		`{"last":"{\"password\":\"hunter2\",\"mode\":\"batch\"}"}`:      `{"last":"{\"password\":REDACTED,\"mode\":\"batch\"}"}`,
		`db_password='x y' user=me`:                                     `db_password=REDACTED user=me`,
		"Authorization: Bearer abcdefghij.klm":                          "Authorization: REDACTED REDACTED",
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
