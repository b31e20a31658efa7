// Package install puts enipool on a node and removes it again: the plugins, the
// network configuration, and files that keep the system's own services off enipool's
// links. Every file appears under its final name whole or not at all, a run that
// was cut off anywhere is completed by the next one, and files of others stay as they
// are. DESIGN.md beside this file says why it is done in this order.
//
// The runtime calls a node ready as soon as it sees a network configuration, so
// that one file is only staged; Publish puts it in place when the agent can serve.
package install
