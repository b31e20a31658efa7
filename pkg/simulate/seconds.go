package simulate

import (
	"strconv"
	"time"
)

// appendSeconds writes a time as a number of seconds with at most three decimals.
func appendSeconds(to []byte, d time.Duration) []byte {
	return strconv.AppendFloat(to, float64(d.Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64)
}
