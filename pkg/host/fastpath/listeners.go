package fastpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/nlmsg"
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
// what comes in there: a limit of what the pod sends, another CNI plugin. A list that changed
// meanwhile is asked for again: a link that it lacks would look as if nobody looked at it.
func readQueues() (links map[int]bool, err error) {
	const tries = 20
	for range tries {
		links = map[int]bool{}
		err = dumpQueues(func(index int, kind string) {
			links[index] = links[index] || kind == "ingress" || kind == "clsact"
		})
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list queues of links: %w", err)
	}
	return links, nil
}

// sizeofTcMsg is the length of struct tcmsg.
const sizeofTcMsg = 20

// dumpQueues tells of each queue of each link; EINTR says that they changed meanwhile. It is
// read several times a second: with a library, which parses all that the kernel says, and has
// it say so in small pieces, it takes ten times as long.
func dumpQueues(tell func(index int, kind string)) error {
	const questionSize = nlmsg.HeaderSize + sizeofTcMsg
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	question := make([]byte, questionSize)
	binary.NativeEndian.PutUint32(question, questionSize)
	binary.NativeEndian.PutUint16(question[4:], unix.RTM_GETQDISC)
	binary.NativeEndian.PutUint16(question[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	list, buf := queueList{tell: tell}, make([]byte, bufferSize)
	for {
		n, _, err := unix.Recvfrom(fd, buf, unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n > len(buf):
			return nlmsg.ErrCut
		}
		if last, err := list.readPart(buf[:n]); last {
			return err
		}
	}
}

// queueList is a list of queues that comes in parts.
type queueList struct {
	tell func(index int, kind string)
	torn bool // it changed since the first part
}

// readPart tells of the queues of a part. The last one may be an error.
func (q *queueList) readPart(part []byte) (last bool, err error) {
	for m, err := range nlmsg.Messages(part) {
		if err == nil && !m.IsEnd() && len(m.Body) < sizeofTcMsg {
			err = nlmsg.ErrCut
		}
		q.torn = q.torn || m.IsTorn()
		switch errno := m.Errno(); {
		case err != nil:
			return true, err
		case m.IsEnd() && q.torn:
			return true, unix.EINTR
		case errno != 0:
			return true, errno
		case m.IsEnd():
			return true, nil
		}
		q.tell(int(binary.NativeEndian.Uint32(m.Body[4:])), trimZeros(nlmsg.Attribute(m.Body[sizeofTcMsg:], unix.TCA_KIND)))
	}
	return false, nil
}
