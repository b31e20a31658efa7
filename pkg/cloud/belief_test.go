package cloud_test

import (
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/google/go-cmp/cmp"
)

func TestBeliefsAreTheRowsOfATable(t *testing.T) {
	const page = `# A cloud

| another | table |
|---|---|
| of other | things |

## Beliefs

What follows is taken for granted.

| belief | source |
|:---|---|
| tokens are kept for a day | example.com/api, "Idempotency" |
| an ENI takes 2 s to attach | none |

## More

| not | this |
|---|---|
| one | either |
`
	want := []cloud.Belief{
		{What: "tokens are kept for a day", Source: `example.com/api, "Idempotency"`},
		{What: "an ENI takes 2 s to attach"},
	}
	if diff := cmp.Diff(want, cloud.ReadBeliefs(page)); diff != "" {
		t.Errorf("beliefs (-want +got):\n%s", diff)
	}
	for _, page := range []string{"", "# A cloud\n", "\n## Beliefs\n", "\n## Beliefs\n| belief | source |\n|---|---|\n"} {
		if got := cloud.ReadBeliefs(page); len(got) > 0 {
			t.Errorf("%q has beliefs %v", page, got)
		}
	}
}
