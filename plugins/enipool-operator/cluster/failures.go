package cluster

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// failures are terms that have ended with the same error, one after the other: what an operator may not read it may not read in the next one either.
type failures struct {
	text  string
	said  time.Time
	count int // since it was said
}

// sayAgain is how often it is said.
const sayAgain = 5 * time.Minute

// add takes in how a term has ended, and returns how many terms have ended so since it was said, this one too; 0: it is not to be said now.
func (f *failures) add(err error, now time.Time) int {
	if err.Error() != f.text {
		*f = failures{text: err.Error()}
	}
	f.count++
	if !f.said.IsZero() && now.Sub(f.said) < sayAgain {
		return 0
	}
	n := f.count
	f.said, f.count = now, 0
	return n
}

// logFailure says why so many terms have ended, and what to do.
func (e Election) logFailure(err error, times int) {
	if times == 0 {
		return
	}
	words := "this operator does not lead any more; it stands for election again"
	if apierrors.IsForbidden(err) {
		words = "this operator can't lead: it lacks rights; apply its roles as they are in this release: kubectl apply --server-side --kustomize conf/kubernetes/operator"
	}
	e.Log.Error(words, "times", times, "error", err)
}
