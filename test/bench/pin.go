package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pinAll keeps all threads of the program, and so all processes it starts, on
// the first so many of its CPUs: the targets are for two.
func pinAll(cpus int) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list own threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("list own threads: %w", err)
		}
		if err := pin(id, cpus); err != nil {
			return err
		}
	}
	return nil
}

// pin keeps a thread, 0 for the calling one, on the first so many of its CPUs.
func pin(thread, cpus int) error {
	var all, some unix.CPUSet
	if err := unix.SchedGetaffinity(thread, &all); err != nil {
		return fmt.Errorf("read CPU affinity: %w", err)
	}
	for cpu := 0; some.Count() < min(cpus, all.Count()); cpu++ {
		if all.IsSet(cpu) {
			some.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(thread, &some); err != nil {
		return fmt.Errorf("set CPU affinity: %w", err)
	}
	return nil
}
