package fastpath

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/enipool/enipool/pkg/bpf"
	"golang.org/x/sys/unix"
)

// Listeners tells one state of what others have that sees the packets which come in
// by the links, ingress queues and programs, from the next.
type Listeners uint64

// Listeners reads what others have at the links which are up, in the network
// namespace of the calling thread.
func (p *Path) Listeners() (l Listeners, err error) {
	queues, err := readQueues()
	if err != nil {
		return 0, err
	}
	var text []byte
	for index, busy := range queues {
		programs, err := bpf.IngressPrograms(index)
		if err != nil {
			return 0, lacksRights(err)
		}
		text = binary.NativeEndian.AppendUint32(text[:0], uint32(index))
		if busy {
			text = append(text, 1)
		}
		for _, id := range programs {
			if id != uint32(p.id) {
				text = binary.NativeEndian.AppendUint32(text, id)
			}
		}
		sum := fnv.New64a()
		sum.Write(text)
		l += Listeners(sum.Sum64()) // links come in no order
	}
	return l, nil
}

// readQueues returns the links that are up, by index, and whether others look at
// what comes in there: a limit of what the pod sends, another CNI plugin.
func readQueues() (map[int]bool, error) {
	links := map[int]bool{}
	err := dumpQueues(func(index int, kind string) {
		links[index] = links[index] || kind == "ingress" || kind == "clsact"
	})
	if err != nil {
		return nil, fmt.Errorf("list queues of links: %w", err)
	}
	return links, nil
}

// dumpQueues tells of each queue of each link. It is read several times a second: with
// a library, which parses all that the kernel says, and has it say so in small
// pieces, it takes ten times as long.
func dumpQueues(tell func(index int, kind string)) error {
	const headSize = unix.SizeofNlMsghdr + 20 // and struct tcmsg
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	question := make([]byte, headSize)
	binary.NativeEndian.PutUint32(question, headSize)
	binary.NativeEndian.PutUint16(question[4:], unix.RTM_GETQDISC)
	binary.NativeEndian.PutUint16(question[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for b := buf[:n]; len(b) >= unix.SizeofNlMsghdr; {
			length := min(int(binary.NativeEndian.Uint32(b)), len(b))
			switch kind := binary.NativeEndian.Uint16(b[4:]); {
			case kind == unix.NLMSG_DONE:
				return nil
			case kind == unix.NLMSG_ERROR && length >= unix.SizeofNlMsghdr+4:
				return unix.Errno(-int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])))
			case length < headSize:
				return unix.EBADMSG
			default:
				tell(int(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr+4:])), queueKind(b[headSize:length]))
			}
			b = b[min((length+3)&^3, len(b)):]
		}
	}
}

// queueKind returns the kind of a queue.
func queueKind(attrs []byte) string {
	for len(attrs) >= unix.SizeofNlAttr {
		length, kind := int(binary.NativeEndian.Uint16(attrs)), binary.NativeEndian.Uint16(attrs[2:])
		if length < unix.SizeofNlAttr || length > len(attrs) {
			break
		}
		if kind == unix.TCA_KIND {
			return strings.TrimRight(string(attrs[unix.SizeofNlAttr:length]), "\x00")
		}
		attrs = attrs[min((length+3)&^3, len(attrs)):]
	}
	return ""
}
