// Package wire is what drivers of clouds have in common, whose APIs are HTTP: addresses of
// answers, texts without secrets, the cloud's time, URLs that credentials may go to, and
// whether a request was sent.
package wire
