package manifests

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/operatorconf"
)

// `make keys` writes the definitions.
func TestTheSchemaOfTheValuesHasThoseOfBothFiles(t *testing.T) {
	const file = helm + "/enipool/values.schema.json"
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, file)), &schema); err != nil {
		t.Fatal(err)
	}
	schema["definitions"] = map[string]any{"agent": definition(t, agentconf.Schema()), "operator": definition(t, operatorconf.Schema())}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, file) != want.String() {
		t.Errorf("%s is not what the tables of keys say: `make keys` writes it", file)
	}
}

// definition is a schema as a part of another one.
func definition(t *testing.T, schema []byte) map[string]any {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(schema, &d); err != nil {
		t.Fatal(err)
	}
	delete(d, "$schema")
	return d
}
