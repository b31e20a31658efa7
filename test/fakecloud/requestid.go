package fakecloud

import (
	"crypto/sha256"
	"fmt"
)

// RequestID returns the id of an endpoint's n-th answer. Each run has the same ones.
func RequestID(n int) string {
	sum := sha256.Sum256(fmt.Append(nil, "request ", n))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
