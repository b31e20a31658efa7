package agent

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// What of the settings the object lacks is never read again as it was written: an agent would write its object for ever.
func TestEachPoolSettingIsReadFromTheObjectAsItWasWritten(t *testing.T) {
	settings := reflect.TypeFor[pool.Config]()
	for i := range settings.NumField() {
		var c pool.Config
		switch field := reflect.ValueOf(&c).Elem().Field(i); field.Kind() {
		case reflect.Int, reflect.Uint8:
			if field.CanInt() {
				field.SetInt(1)
			} else {
				field.SetUint(1)
			}
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Struct:
			c.Scale.Batch = 16
		default:
			t.Fatalf("%s is a %s, which nobody sets here", settings.Field(i).Name, field.Kind())
		}
		t.Run(fmt.Sprint(settings.Field(i).Name), func(t *testing.T) {
			wrote := order.Spec{Pool: poolFor(c, 0, 0)}
			var object crd.NodeNetworkSpec
			object.Write(wrote)
			read, err := object.Read()
			if err != nil || read.Pool != wrote.Pool {
				t.Errorf("%+v was written, and %+v read: %v", wrote.Pool, read.Pool, err)
			}
		})
	}
}
