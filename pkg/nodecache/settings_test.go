package nodecache

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// What one field says reaches the plugin: it is written, and read as it was. A field that is forgotten here would be written and
// compared for ever, and do nothing.
func TestEachSettingIsWrittenAndRead(t *testing.T) {
	full := small().Settings
	full.Families, full.Gated = []eni.Family{eni.IPv4, eni.IPv6}, []string{"db", "cache"}
	lines := encodeSettings(full)
	for i := range reflect.TypeFor[ipam.Settings]().NumField() {
		name := reflect.TypeFor[ipam.Settings]().Field(i).Name
		changed := full
		field := reflect.ValueOf(&changed).Elem().Field(i)
		switch field.Kind() {
		case reflect.Bool:
			field.SetBool(!field.Bool())
		case reflect.Int, reflect.Int64:
			field.SetInt(field.Int() ^ 1)
		case reflect.Uint8, reflect.Uint32:
			field.SetUint(field.Uint() ^ 1)
		case reflect.Slice:
			field.Set(field.Slice(0, max(0, field.Len()-1)))
		default:
			t.Fatalf("how is %s, a %s, changed?", name, field.Kind())
		}
		written := encodeSettings(changed)
		if slices.Equal(written, lines) {
			t.Errorf("%s is not written", name)
		}
		read := ipam.Settings{PodsInMain: true}
		for _, line := range written {
			if err := decodeSetting(line, &read); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(changed, read, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("%s is read otherwise, of %s\n%s", name, strings.Join(written, "; "), diff)
		}
	}
}
