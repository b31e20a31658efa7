package sim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// A Node does not wait for states that take time: later calls finish what is under way.
func TestLaterCallsFinishWhatTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := whole(t, newAccount(t, Options{CreateTime: time.Second, AttachTime: time.Second, DetachTime: time.Second}))
		n := a.Old("n1")
		until := func(what string, try func() error) {
			t.Helper()
			tries := 1
			for ; ; tries++ {
				err := try()
				if err == nil {
					break
				}
				if !errors.Is(err, cloud.ErrUnknown) || tries > 5 {
					t.Fatalf("%s, %d. try: %v", what, tries, err)
				}
				time.Sleep(time.Second)
			}
			if tries < 2 {
				t.Errorf("%s took no time", what)
			}
		}
		var made cloud.Interface
		until("create", func() (err error) {
			made, err = n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 2})
			return err
		})
		if made.Index != 1 || len(made.Addresses) != 2 || len(a.Attached("n1")) != 2 {
			t.Errorf("it is %+v of %+v", made, a.Attached("n1"))
		}
		until("delete", func() error { return n.DeleteInterface(t.Context(), made.ID) })
		if left := a.Attached("n1"); len(left) != 1 {
			t.Errorf("there are %+v", left)
		}
	})
}
