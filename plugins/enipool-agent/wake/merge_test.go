package wake

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestTwoReasonsToWakeAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		one, other := make(chan struct{}, 1), make(chan struct{}, 1)
		wake := Merge(ctx, one, other)
		for _, c := range []chan struct{}{one, other} {
			c <- struct{}{}
			synctest.Wait()
			<-wake
		}
		one <- struct{}{}
		other <- struct{}{}
		synctest.Wait()
		<-wake
		select {
		case <-wake:
			t.Error("woken twice")
		default:
		}
		stop()
		synctest.Wait()
	})
}
