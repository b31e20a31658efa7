package agent

import (
	"reflect"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
)

// A setting that is compared by nobody would change in the file and not on the node, and one that a plan does not tell surprises who asked for it.
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
		name := reflect.TypeFor[ipam.Settings]().Field(i).Name
		if sameSettings(was, changed) {
			t.Errorf("%s is not compared", name)
		}
		if lines := settingChanges(changed, was); len(lines) != 1 {
			t.Errorf("a plan tells of a change of %s %q", name, lines)
		}
	}
}
