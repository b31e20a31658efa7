package crd

import (
	"encoding/json"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// Whatever time an API server takes for a date-time an operator reads: a list of all nodes fails as a whole where one object can't be
// read, and no operator leads any more.
func TestATimeThatTheAPIServerTakesCanBeRead(t *testing.T) {
	for _, since := range []string{"2026-11-27T12:00:00Z", "2026-11-27t12:00:00z", "2026-11-27T12:00:00+99:00"} {
		var list NodeNetworkList
		err := json.Unmarshal([]byte(`{"items":[{"spec":{"mode":"Operator","slots":1,"waiting":1,"waitingSince":"`+since+`"}},{"spec":{"mode":"Operator","slots":1}}]}`), &list)
		if strfmt.IsDateTime(since) && err != nil { // which is how API servers judge the format
			t.Errorf("of two objects none is read, since one has the time %s: %v", since, err)
		}
	}
}
