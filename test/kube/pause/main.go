// Command pause waits: it is all that the first container of a pod in the tests
// has to do, and the first process of a node, whose orphans it reaps.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signal.Ignore(syscall.SIGCHLD) // the kernel then keeps no dead children
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
