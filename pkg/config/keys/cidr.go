package keys

import "strings"

// CIDRPattern returns the regular expression of a range of addresses without host bits, as far as one can say that: of IPv4 it
// knows host bits by octets, of IPv6 none. What it refuses netip.ParsePrefix and Masked refuse too.
func CIDRPattern() string {
	const (
		octet = `(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
		group = `[0-9a-fA-F]{1,4}`
		ipv4  = octet + `(\.` + octet + `){3}`
	)
	bits := []string{`/(2[5-9]|3[0-2])`, `/(1[7-9]|2[0-4])`, `/(9|1[0-6])`, `/[1-8]`, `/0`}
	var forms []string
	for zeros, length := range bits { // so many octets have host bits alone
		forms = append(forms, strings.TrimSuffix(strings.Repeat(octet+`\.`, 4-zeros)+strings.Repeat(`0\.`, zeros), `\.`)+length)
	}
	ipv6 := `((` + group + `:){7}` + group + `|(` + group + `:){6}` + ipv4 +
		`|(` + group + `(:` + group + `){0,6})?::((` + group + `:){0,6}(` + group + `|` + ipv4 + `))?)/(12[0-8]|1[01][0-9]|[1-9]?[0-9])`
	return `^(` + strings.Join(append(forms, ipv6), `|`) + `)$`
}
