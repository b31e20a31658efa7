// Package ec2 is an sim.Account that speaks as EC2 does: the Query protocol with its
// XML answers (Handler) and the instance metadata service, version 2 (Metadata).
// Requests are checked as strictly as EC2 checks them, signatures among them, or,
// with Quirks, as loosely as emulators of EC2 do.
package ec2
