package crd

import (
	"encoding/json"
	"strings"
	"testing"
)

// What kubectl shows in a column is written at 0 too: an empty cell looks like something that is not known.
func TestCountsThatAreColumnsAreWrittenAtZero(t *testing.T) {
	for _, tt := range []struct {
		status any
		fields string
	}{
		{NodeNetworkStatus{}, "slots interfaces"},
		{SubnetStatus{}, "free room owed interfaces"},
	} {
		text, err := json.Marshal(tt.status)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(tt.fields) {
			if !strings.Contains(string(text), `"`+field+`":0`) {
				t.Errorf("%s is left out of %s", field, text)
			}
		}
	}
}
