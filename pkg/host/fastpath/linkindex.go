package fastpath

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// linkIndices returns the links that there are of the names, by index. The library
// lists all links of the node for each name, which takes seconds with hundreds.
func linkIndices(names []string) ([]int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open socket to find links: %w", err)
	}
	defer unix.Close(fd)
	var list []int
	for _, name := range names {
		question, err := unix.NewIfreq(name)
		if err != nil {
			return nil, fmt.Errorf("link %q: %w", name, err)
		}
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, question)
		if err == unix.ENODEV {
			continue // it is being attached, or gone: the agent says so
		}
		if err != nil {
			return nil, fmt.Errorf("find link %s: %w", name, err)
		}
		list = append(list, int(question.Uint32()))
	}
	return list, nil
}
