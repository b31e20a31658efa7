// Package wire is what drivers of clouds have in common, whose APIs are HTTP: addresses of
// answers, texts without secrets, the cloud's time, URLs that credentials may go to,
// whether a request was sent, and for those without an SDK what came of it.
package wire
