// Package pagetest compares what package page makes of a page with what html/template makes of it.
package pagetest

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"testing"

	"github.com/enipool/enipool/pkg/page"
)

// awkward is what would be markup, or the end of an attribute, if it were not escaped.
const awkward = "</style><script>alert('1+1')</script>\" onload=\"&amp;\x00"

// Compare fills a value of the type that a page is about in several ways, and expects both to make the same page of each. Styles and scripts
// are left empty: they have types of their own in each. A Link is an address that has the text in it.
func Compare[T any](t *testing.T, text string) {
	t.Helper()
	other := template.Must(template.New("page").Parse(text))
	for _, many := range []int{0, 1, 2} {
		for _, filling := range []string{"", "eni-a", awkward} {
			var about T
			fill(reflect.ValueOf(&about).Elem(), filling, many)
			var got, want bytes.Buffer
			if err := page.MustParse(text).Execute(&got, about); err != nil {
				t.Fatalf("%d of all, %q: %v", many, filling, err)
			}
			if err := other.Execute(&want, about); err != nil {
				t.Fatal(err)
			}
			if got.String() != want.String() {
				t.Errorf("%d of all, %q: the page is\n%s\nand html/template's is\n%s", many, filling, &got, &want)
			}
		}
	}
}

// fill gives each text and number in v a value, and each list so many members.
func fill(v reflect.Value, text string, many int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(many > 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(many))
	case reflect.Float64:
		v.SetFloat(float64(many))
	case reflect.Slice:
		if v.Type().Elem() == reflect.TypeFor[page.Trusted]() {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), many, many))
		for i := range many {
			fill(v.Index(i), text, many)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch field := v.Field(i); {
			case v.Type().Field(i).Name == "Link": // an address, which html/template would make of anything
				field.SetString("/why?node=" + url.QueryEscape(text))
			case field.CanSet():
				fill(field, text, many)
			}
		}
	case reflect.Pointer, reflect.Map, reflect.Interface: // pages name none of them
	default:
		panic(fmt.Sprintf("fill %s: pages have had none of that kind", v.Type()))
	}
}
