package report

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/simulate"
)

func TestCountsAreExactWhileTheyAreShort(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0", 7: "7", 9999: "9999", 10_000: "10.0k", 12_345: "12.3k", 99_949: "99.9k", 99_951: "100k", 123_456: "123k",
		999_949: "1000k", 999_950: "1.00M", 1_234_567: "1.23M", 45_600_000: "45.6M", 2e9: "2.00G",
	} {
		if got := countText(n); got != want {
			t.Errorf("count(%v) = %s, want %s", n, got, want)
		}
	}
}

func TestMeansHaveADecimalWhereItSaysSomething(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.04: "0", 1.25: "1.2", 12: "12", 12.06: "12.1", 99.94: "99.9", 99.96: "100", 626.4: "626", 20000: "20.0k"} {
		if got := meanText(n); got != want {
			t.Errorf("mean(%v) = %s, want %s", n, got, want)
		}
	}
}

func TestTimesAreAsExactAsPeopleWantThem(t *testing.T) {
	const ms, day = time.Millisecond, 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0s", 300 * time.Microsecond: "<1ms", ms: "1ms", 850 * ms: "850ms", 999*ms + 600*time.Microsecond: "1s",
		2340 * ms: "2.3s", 9970 * ms: "10s", 42400 * ms: "42s", 59700 * ms: "1m", 200 * time.Second: "3m20s",
		time.Hour - ms: "1h", 65 * time.Minute: "1h5m", day: "24h", 2 * day: "2d", 76 * time.Hour: "3d4h",
	} {
		if got := durationText(simulate.Seconds(d)); got != want {
			t.Errorf("span(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestNumbersOfThingsAreExact(t *testing.T) {
	for n, want := range map[int]string{0: "0 pods", 1: "1 pod", 999: "999 pods", 12345: "12,345 pods", 1234567: "1,234,567 pods"} {
		if got := numberOf(n, "pod", "pods"); got != want {
			t.Errorf("number(%d) = %s, want %s", n, got, want)
		}
	}
}
