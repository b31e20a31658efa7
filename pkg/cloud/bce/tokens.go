package bce

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A clientToken may have 64 characters; those here have 40.

// fresh returns a clientToken for a call that is made once.
func fresh() string { return "enipool-" + hex.EncodeToString(random()) }

func random() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return b
}

// derived returns the clientToken of a step of what a Create's token is for: the
// same in each attempt, also of a later process.
func derived(token string, step ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", token, fmt.Sprintln(step...)))
	return "enipool-" + hex.EncodeToString(sum[:16])
}
