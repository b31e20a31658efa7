package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

func TestAnErrorSaysWhatFailedAboutWhatAndWhy(t *testing.T) {
	for _, tt := range []struct {
		err  cloud.Error
		want string
	}{
		{cloud.Error{Op: "Interfaces", Kind: cloud.ErrUnavailable}, "Interfaces: cloud unavailable"},
		{cloud.Error{Op: "AssignAddresses", Object: "eni-1", Kind: cloud.ErrLimit}, "AssignAddresses eni-1: limit reached"},
		{cloud.Error{Op: "Subnets", Kind: cloud.ErrThrottled, Detail: "RequestLimitExceeded", RetryAfter: time.Second},
			"Subnets: throttled: RequestLimitExceeded"},
		{cloud.Error{Kind: cloud.ErrForbidden, Detail: "AuthFailure"}, "forbidden: AuthFailure"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("error %q, want %q", got, tt.want)
		}
	}
}

func TestTheKindOfAnErrorIsFoundHoweverItIsWrapped(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range cloud.Kinds() {
		err := fmt.Errorf("fill the pool: %w", &cloud.Error{Op: "AssignAddresses", Kind: kind})
		if got := cloud.Kind(err); got != kind || !errors.Is(err, kind) {
			t.Errorf("the kind of %v is %v", err, got)
		}
		seen[kind.Error()] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d kinds have texts of their own, want 8: %v", len(seen), seen)
	}
	if got := cloud.Kind(errors.Join(io.EOF, cloud.ErrForbidden)); got != cloud.ErrForbidden {
		t.Errorf("the kind of a joined error is %v", got)
	}
}

func TestWhatIsNotTheCloudsErrorIsUnknown(t *testing.T) {
	for _, err := range []error{io.EOF, context.DeadlineExceeded} {
		if got := cloud.Kind(err); got != cloud.ErrUnknown {
			t.Errorf("the kind of %v is %v", err, got)
		}
	}
}

func TestAnInterfaceHasANetOfEachFamily(t *testing.T) {
	i := cloud.Interface{
		V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.2/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
		V6: eni.Net{Primary: netip.MustParsePrefix("fd00::2/64"), Gateway: netip.MustParseAddr("fd00::1")},
	}
	if i.Net(eni.IPv4) != i.V4 || i.Net(eni.IPv6) != i.V6 {
		t.Error("Net gives the other family's")
	}
}
