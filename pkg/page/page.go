// Package page is what the pages for browsers share: how they look, what a browser may do with them, and
// how often one is made.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
)

// base are the styles of every page: colours of both themes, text, tables.
//
//go:embed base.css
var base string

// cells are the styles of a live page: its banner, and a cell for each of many things.
//
//go:embed cells.css
var cells string

// live keeps a page up to date, and reads out what a cell is.
//
//go:embed live.js
var live string

// Base returns the styles of every page: colours of both themes, text, tables.
func Base() Trusted { return Trusted(base) }

// Parts are the styles and scripts of a page, all of which are in its text.
type Parts struct {
	Styles, Scripts []Trusted
}

// Live returns the parts of a page that a program serves about itself: with cells, and kept up to date.
func Live() Parts {
	return Parts{[]Trusted{Base(), Trusted(cells)}, []Trusted{Trusted(live)}}
}

// Policy returns the content security policy that allows the page its own parts and nothing else.
func (p Parts) Policy() string {
	style, script := make([]string, 0, len(p.Styles)), make([]string, 0, len(p.Scripts))
	for _, s := range p.Styles {
		style = append(style, hashSource(string(s)))
	}
	for _, s := range p.Scripts {
		script = append(script, hashSource(string(s)))
	}
	return "default-src 'none'; style-src " + strings.Join(style, " ") + "; script-src " + strings.Join(script, " ") +
		"; base-uri 'none'; form-action 'none'"
}

// Protect writes the headers of a page that a program serves: it may ask its own address for itself again, nobody may
// show it inside another page, and no cache keeps it.
func (p Parts) Protect(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.Policy()+"; connect-src 'self'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
}

func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
