// Package report shows what a simulation found: as a table with sparklines for a
// terminal, as JSON, and as a page with plots for a browser. The page is one file
// that needs no network.
package report
