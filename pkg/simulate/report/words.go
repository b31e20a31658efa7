package report

import "github.com/enipool/enipool/pkg/simulate"

// Duration writes a time as reports do: in at most two units, as exact as people want it.
func Duration(s simulate.Seconds) string { return durationText(s) }

// Number writes n of something as reports do: exactly, with the thousands set apart.
func Number(n int, one, many string) string { return numberOf(n, one, many) }
