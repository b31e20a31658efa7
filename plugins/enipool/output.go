package main

import (
	"encoding/json"
	"io"

	"github.com/containernetworking/cni/pkg/types"
)

// printError writes the protocol's error object, which, unlike types.Error,
// carries the version of the specification.
func printError(out io.Writer, err *types.Error, cniVersion string) {
	object := struct {
		CNIVersion string `json:"cniVersion"`
		Code       uint   `json:"code"`
		Msg        string `json:"msg"`
		Details    string `json:"details"`
	}{cniVersion, err.Code, err.Msg, err.Details}
	text, _ := json.MarshalIndent(object, "", "    ") // strings and a number always marshal
	// If the runtime is gone there is nobody left to tell.
	_, _ = out.Write(append(text, '\n'))
}
