package cli

import (
	"strings"
	"testing"
)

func TestWhatProgramsReadBeginsWithTheVersionOfItsFormat(t *testing.T) {
	for want, v := range map[string]any{
		"{\n  \"format\": 1\n}":                      struct{}{},
		"{\n  \"format\": 1,\n  \"a\": \"b < c\"\n}": map[string]string{"a": "b < c"},
	} {
		if got, err := JSON(v); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	var out strings.Builder
	if err := PrintAs(&out, "yaml", struct {
		List []int `json:"list"`
	}{[]int{1}}, nil); err != nil || out.String() != "format: 1\nlist:\n- 1\n" {
		t.Errorf("%q, %v", &out, err)
	}
	if _, err := JSON([]int{1}); err == nil {
		t.Error("a list has no version, and is printed")
	}
}
