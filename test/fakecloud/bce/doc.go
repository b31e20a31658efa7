// Package bce is an sim.Account that speaks as Baidu's cloud does: REST with JSON
// bodies for ENIs, subnets and instances (Handler), and its instance metadata
// (Metadata). Requests are checked as strictly as the API checks them, signatures
// of the form bce-auth-v1 among them.
//
// What the API's reference does not tell is as Baidu's own SDK and driver expect
// it: the service for ENIs knows nothing of an instance's own ENI, which its
// description has. The code for a call that does not fit an ENI's state,
// EniStatusException, is this package's invention.
package bce
