package agent

import (
	"reflect"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
)

// A setting that is compared by nobody would change in the file and not on the node.
func TestNoSettingIsForgottenWhereTheCacheIsCompared(t *testing.T) {
	for i := range reflect.TypeFor[ipam.Settings]().NumField() {
		var was, changed ipam.Settings
		switch f := reflect.ValueOf(&changed).Elem().Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Uint8, reflect.Uint32:
			f.SetUint(1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			t.Fatalf("how is a %s changed?", f.Kind())
		}
		if sameSettings(was, changed) {
			t.Errorf("%s is not compared", reflect.TypeFor[ipam.Settings]().Field(i).Name)
		}
	}
}
