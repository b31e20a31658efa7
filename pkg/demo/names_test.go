package demo

import "testing"

func TestENIsThatWereAdoptedInAnotherOrderAreTheSame(t *testing.T) {
	if a, b := []string{"eni-1", "eni-4", "eni-5"}, []string{"eni-1", "eni-5", "eni-4"}; !sameNames(a, b) || sameNames(a, b[1:]) {
		t.Error("the same ENIs in another order are not told from others")
	}
}
