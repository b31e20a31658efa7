// Package conf holds the files that people copy: network configurations and an
// inventory with every key explained. They are embedded, so that what the demo
// runs is what people get.
package conf

import "embed"

// Files are the files of this folder.
//
//go:embed *.conflist *.yaml
var Files embed.FS
