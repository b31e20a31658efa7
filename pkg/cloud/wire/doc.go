// Package wire has what drivers of clouds with HTTP APIs have in common: reading addresses, hiding
// secrets in texts, comparing clocks, checking the URLs that credentials go to, finding out whether
// a request was sent and, for drivers without an SDK, sending it.
package wire
